"""A server that answers request after request as a test has written down: corners that real ones show rarely."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import Credentials


def make_object(name, version, namespace="default", **fields):
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata, **fields}


def added(name, version):
    return {"type": "ADDED", "object": make_object(name, version)}


def modified(name, version):
    return {"type": "MODIFIED", "object": make_object(name, version)}


def deleted(name, version):
    return {"type": "DELETED", "object": make_object(name, version)}


def bookmark(version, *, initial_end=False):
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if initial_end else {}
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), **annotations}}}


def make_status(code, reason, message="refused", **details):
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


def in_stream_error(code, reason):
    return {"type": "ERROR", "object": make_status(code, reason)}


def answer(body, code=200, headers=None):
    """A whole reply."""

    async def act(request):
        return web.json_response(body, status=code, headers=headers)

    return act


def refuse(code, reason, message="refused", headers=None, **details):
    return answer(make_status(code, reason, message, **details), code, headers)


def stream(*events, then="stay"):
    """A watch with these events; `then` it stays open, ends cleanly, or breaks."""

    async def act(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for event in events:
            await response.write(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n")
        if then == "stay":
            await asyncio.Event().wait()
        elif then == "break":
            request.transport.abort()
        return response

    return act


def hang_up():
    """A connection that breaks before any reply."""

    async def act(request):
        request.transport.abort()
        return web.Response()

    return act


@dataclass
class ScriptedApi:
    """What is to be answered next, and what was asked; past the script's end, requests wait for ever."""

    url: str = ""
    script: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    """Method, path, query, headers and body of each request."""

    def then(self, *turns):
        self.script.extend(turns)

    async def handle(self, request):
        self.asked.append((request.method, request.path, dict(request.query), request.headers, await request.read()))
        if not self.script:
            await asyncio.Event().wait()
        return await self.script.pop(0)(request)

    def queries(self):
        return [query for _, _, query, _, _ in self.asked]

    def credentials(self, headers=dict, reload=None):
        return Credentials(
            server=self.url,
            ssl=None,
            server_hostname=None,
            proxy=None,
            namespace="default",
            headers=headers,
            reload=reload or (lambda: self.credentials(headers)),
        )

    def client(self):
        return Client(self.credentials())


@asynccontextmanager
async def scripted_api(*turns):
    api = ScriptedApi(script=list(turns))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield api
    finally:
        await runner.cleanup()
