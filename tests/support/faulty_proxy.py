"""A proxy between a program and the API server: the program's first write goes wrong, or all watches break."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web
from apiserver_fixtures import Api
from kubeconfigs import write_kubeconfig
from served_requests import passed_on_headers, served_requests

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Fault(Enum):
    """What goes wrong with a write."""

    REPLY_LOST = "its reply is lost"
    REQUEST_LOST = "it never reaches the server"


class FaultyProxy:
    """Passes requests on; the first write meets the `fault`."""

    def __init__(self, api: Api, folder: Path) -> None:
        self.api = api
        self.folder = Path(folder)
        self.fault: Fault | None = None
        self.met = False
        self.answers: list[Any] = []
        """What reading was refused with: the path and the code or a watch's ERROR."""
        self.open = asyncio.Event()
        """Cleared, it holds every new request up."""
        self.open.set()
        self.kubeconfig = self.folder / "unserved.kubeconfig"
        self._streams: set[Any] = set()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Self]:
        """The proxy with a free port and a kubeconfig that leads to it."""
        async with served_requests(self._relay) as port:
            self.kubeconfig = self.folder / f"proxy-{port}.kubeconfig"
            write_kubeconfig(self.kubeconfig, f"http://127.0.0.1:{port}", self.api.token)
            yield self

    def cut(self) -> None:
        """Break every connection with a stream; nothing new gets through until `open` is set."""
        self.open.clear()
        for transport in self._streams:
            transport.abort()

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        await self.open.wait()
        if request.method not in WRITES:
            return await self._stream(request)
        fault, self.met = None if self.met else self.fault, True
        if fault is Fault.REQUEST_LOST:
            return _broken(request)
        async with self._ask(request, await request.read()) as answer:
            body = await answer.read()
        if fault is Fault.REPLY_LOST:
            return _broken(request)
        return web.Response(status=answer.status, body=body, headers={"Content-Type": answer.content_type})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        async with self._ask(request, None) as answer:
            if answer.status >= 400:
                self.answers.append((request.path, answer.status))
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            self._streams.add(request.transport)
            with contextlib.suppress(ConnectionError):  # the controller has gone
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    if b'{"type":"ERROR"' in chunk:
                        self.answers.append((request.path, json.loads(chunk.splitlines()[-1])["object"]["code"]))
                    await response.write(chunk)
            self._streams.discard(request.transport)
            return response

    def _ask(self, request: web.Request, body: Any) -> Any:
        headers = passed_on_headers(request)
        timeout = aiohttp.ClientTimeout(total=None)
        return self.api.session.request(
            request.method, self.api.base + request.path_qs, data=body, headers=headers, timeout=timeout
        )


def _broken(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)
