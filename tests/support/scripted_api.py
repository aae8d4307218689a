"""A server that answers request after request as a test has written down: corners that real ones show rarely."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from served_requests import served_requests

from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import Credentials

Turn = Callable[[web.Request], Awaitable[web.StreamResponse]]
"""How one request is answered."""


def make_object(name: str, version: int, namespace: str = "default", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, **fields}


def added(name: str, version: int) -> dict[str, Any]:
    return {"type": "ADDED", "object": make_object(name, version)}


def modified(name: str, version: int) -> dict[str, Any]:
    return {"type": "MODIFIED", "object": make_object(name, version)}


def deleted(name: str, version: int) -> dict[str, Any]:
    return {"type": "DELETED", "object": make_object(name, version)}


def bookmark(version: int, *, initial_end: bool = False) -> dict[str, Any]:
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if initial_end else {}
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), **annotations}}}


def make_status(code: int, reason: str, message: str = "refused", **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


def in_stream_error(code: int, reason: str) -> dict[str, Any]:
    return {"type": "ERROR", "object": make_status(code, reason)}


def _abort(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


def answer(body: Any, code: int = 200, headers: dict[str, str] | None = None) -> Turn:
    """A whole reply."""

    async def act(request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=code, headers=headers)

    return act


def refuse(
    code: int, reason: str, message: str = "refused", headers: dict[str, str] | None = None, **details: Any
) -> Turn:
    return answer(make_status(code, reason, message, **details), code, headers)


def stream(*events: dict[str, Any] | bytes, then: str = "stay") -> Turn:
    """A watch with these events; `then` it stays open, ends cleanly, or breaks."""

    async def act(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for event in events:
            await response.write(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n")
        if then == "stay":
            await asyncio.Event().wait()
        elif then == "break":
            _abort(request)
        return response

    return act


def hang_up() -> Turn:
    """A connection that breaks before any reply."""

    async def act(request: web.Request) -> web.StreamResponse:
        _abort(request)
        return web.Response()

    return act


@dataclass
class ScriptedApi:
    """What is to be answered next, and what was asked; past the script's end, requests wait for ever."""

    url: str = ""
    script: list[Turn] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    """Method, path, query, headers and body of each request."""

    def then(self, *turns: Turn) -> None:
        self.script.extend(turns)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.method, request.path, dict(request.query), request.headers, await request.read()))
        if not self.script:
            await asyncio.Event().wait()
        return await self.script.pop(0)(request)

    def queries(self) -> list[Any]:
        return [query for _, _, query, _, _ in self.asked]

    def credentials(
        self,
        headers: Callable[[], Mapping[str, str]] = dict,
        reload: Callable[[], Awaitable[Credentials]] | None = None,
    ) -> Credentials:
        async def unchanged() -> Credentials:
            return self.credentials(headers)

        return Credentials(
            server=self.url,
            ssl=None,
            server_hostname=None,
            proxy=None,
            namespace="default",
            headers=headers,
            reload=reload or unchanged,
        )

    def client(self) -> Client:
        return Client(self.credentials())


@asynccontextmanager
async def scripted_api(*turns: Turn) -> AsyncIterator[ScriptedApi]:
    api = ScriptedApi(script=list(turns))
    async with served_requests(api.handle) as port:
        api.url = f"http://127.0.0.1:{port}"
        yield api
