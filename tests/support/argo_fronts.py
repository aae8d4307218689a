"""Fronts of an API server for Argo's pods, by which one request of theirs goes wrong."""

import asyncio
import contextlib
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, Self

from aiohttp import web
from apiserver_fixtures import Api
from served_requests import passed_on_headers, served_requests

TIMED_OUT = {
    "apiVersion": "v1",
    "kind": "Status",
    "status": "Failure",
    "reason": "Timeout",
    "code": 504,
    "message": "Timeout: request did not complete within requested timeout - context deadline exceeded",
}


class _Asked(NamedTuple):
    method: str
    url: str
    body: bytes
    headers: Mapping[str, str]


class _Front(ABC):
    def __init__(self, server: Any, api: Api) -> None:
        self._server = server
        self._api = api
        self.url = ""

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[Self]:
        """The front with an address of its own."""
        identity = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server.ca.issue_cert("127.0.0.1").configure_cert(identity)
        async with served_requests(self._relay, identity) as port:
            self.url = f"https://127.0.0.1:{port}"
            yield self

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        headers = passed_on_headers(request, "accept-encoding")
        asked = _Asked(request.method, self._api.base + request.path_qs, await request.read(), headers)
        return await self._answer(request, asked)

    @abstractmethod
    async def _answer(self, request: web.Request, asked: _Asked) -> web.Response:
        """Answer, mostly by what is passed on."""

    async def _passed_on(self, asked: _Asked) -> web.Response:
        async with self._api.session.request(
            asked.method, asked.url, data=asked.body or None, headers=asked.headers
        ) as answer:
            kind = {"Content-Type": answer.headers.get("Content-Type", "application/json")}
            return web.Response(status=answer.status, body=await answer.read(), headers=kind)


class HoldsRequest(_Front):
    """Passes everything on to `api`; the first request about MXJobs with this method and query gets no answer."""

    def __init__(self, server: Any, api: Api, method: str, query: str = "") -> None:
        super().__init__(server, api)
        self._method = method
        self._query = query
        self._held: _Asked | None = None
        self.held = asyncio.Event()

    async def let_go(self) -> None:
        """Have the request take effect after all, whoever sent it."""
        assert self._held is not None, "nothing is held"
        answer = await self._passed_on(self._held)
        assert answer.status < 300, answer.body

    async def _answer(self, request: web.Request, asked: _Asked) -> web.Response:
        of_kind = request.method == self._method and "/mxjobs" in request.path and self._query in request.query_string
        if of_kind and self._held is None:
            self._held = asked
            self.held.set()
            await asyncio.Event().wait()  # until who asks goes away, or the front does
        return await self._passed_on(asked)


class LosesReply(_Front):
    """Passes everything on to `api`; the reply to the first create of an MXJob is lost.

    The job is made, and who asked gets the answer that kube-apiserver gives when a create takes longer than it was
    given: it may have taken effect.
    """

    def __init__(self, server: Any, api: Api) -> None:
        super().__init__(server, api)
        self.lost: list[str] = []
        """The requests that were carried out and answered with a time-out."""

    async def _answer(self, request: web.Request, asked: _Asked) -> web.Response:
        answer = await self._passed_on(asked)
        if request.method == "POST" and request.path.endswith("/mxjobs") and not self.lost:
            assert answer.status == 201, answer.body
            self.lost.append(request.path)
            return web.json_response(TIMED_OUT, status=504)
        return answer
