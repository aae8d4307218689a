"""API server over HTTPS on loopback, with token authentication: reads requests, writes responses, streams."""

import asyncio
import contextlib
import hmac
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from aiohttp import web

from mxnet_operator.kube.tls import PromptTls
from mxnet_operator.local.apiserver import resources as builtin
from mxnet_operator.local.apiserver.documents import HEALTH, Documents
from mxnet_operator.local.apiserver.garbage_collection import GarbageCollector
from mxnet_operator.local.apiserver.json_values import at
from mxnet_operator.local.apiserver.logs import LogSource, log_request
from mxnet_operator.local.apiserver.requests import (
    BODY_LIMIT,
    Answer,
    Request,
    Target,
    Verbs,
    allow,
    find_target,
    truth,
    watch_options,
)
from mxnet_operator.local.apiserver.statuses import StatusError, bad_request
from mxnet_operator.local.apiserver.store import Store
from mxnet_operator.local.apiserver.tables import table, wants_table
from mxnet_operator.local.apiserver.watch import watch

_log = logging.getLogger(__name__)

_SHUTDOWN_SECONDS = 1.0
"""Seconds that open requests get to end at shutdown; that of a followed log never ends."""


class ApiServer:
    """In-memory Kubernetes API server; `log_source` may be set later, `history` is as of `Store`."""

    def __init__(
        self,
        crds: Iterable[Mapping[str, Any]],
        token: str,
        log_source: LogSource | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        history: int = 1000,
    ) -> None:
        self.store = Store(crds, clock=clock, history=history)
        self.log_source = log_source
        self._token = token.encode()
        self._documents = Documents(self.store.catalog)
        self._verbs = Verbs(self.store)
        self._closing = asyncio.Event()
        collector = GarbageCollector(self.store, lambda: asyncio.get_running_loop().call_soon(collector.run))
        self._runner: web.AppRunner | None = None

    async def start(self, ssl_context: ssl.SSLContext, host: str = "127.0.0.1", port: int = 0) -> int:
        """Start to listen; returns the port.

        Raises:
            OSError: The port is taken.
        """
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_route("*", "/{path:.*}", self._handle)
        ssl_context.sslobject_class = PromptTls
        # a client that goes away takes its watches with it at once
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port, ssl_context=ssl_context).start()
        except OSError:
            await self.stop()
            raise
        bound: int = self._runner.addresses[0][1]
        return bound

    async def stop(self) -> None:
        """End every watch cleanly, then stop listening."""
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except StatusError as error:
            return _json(error.status, error.code)
        except RecursionError:
            return _json(bad_request("the body is nested too deeply").status, 400)
        except web.HTTPException:
            raise
        except ConnectionError as error:
            # The client left while it was being answered, or a stream broke off: what follows reaches nobody.
            _log.debug("%s %s: %s", request.method, request.path, error)
            if request.transport is not None:
                request.transport.close()
            return web.Response()
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            failure = StatusError(500, "InternalError", "Internal error occurred: see the log of the local cluster")
            return _json(failure.status, 500)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.path in HEALTH:
            return web.Response(text="ok")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.encode(errors="surrogateescape"), self._token):
            raise StatusError(401, "Unauthorized", "Unauthorized")
        if "Impersonate-User" in request.headers:
            raise StatusError(403, "Forbidden", "impersonation is not supported by the local cluster")
        if request.method == "GET" and (document := self._documents.at(request.path)):
            return web.Response(body=document, content_type="application/json")
        target = find_target(self.store.catalog, request.path)
        if target is None:
            raise StatusError(404, "NotFound", "the server could not find the requested resource", {})
        if target.subresource == "log":
            allow(request.method == "GET")
            return await self._log(request, target)
        if request.method == "GET" and not target.name and truth(request.query.get("watch")):
            allow("watch" in target.resource.verbs)
            return await self._watch(request, target)
        return _response(self._verbs.answer(await _read(request), target))

    async def _watch(self, request: web.Request, target: Target) -> web.StreamResponse:
        options, as_tables = watch_options(target, request.query), wants_table(request.headers)
        response = await _stream(request, "application/json")
        headings = True
        async with contextlib.aclosing(watch(self.store, options, self._closing)) as batches:
            async for events in batches:
                frames = bytearray()
                for kind, obj in events:
                    shown = obj
                    if as_tables and kind != "ERROR":
                        metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
                        shown = table(target.resource, [obj], self.store.clock(), metadata, headings=headings)
                        headings = False
                    frames += msgspec.json.encode({"type": kind, "object": shown}) + b"\n"
                if frames and not await _write(response, bytes(frames)):
                    return response
        await response.write_eof()
        return response

    async def _log(self, request: web.Request, target: Target) -> web.StreamResponse:
        pod = self.store.get(builtin.PODS, target.namespace, target.name)
        wanted = log_request(pod, request.query)
        if not at(pod, "spec", "nodeName"):
            return web.Response(status=204)
        if self.log_source is None:
            raise StatusError(500, "InternalError", "no kubelet is running that has the logs of this pod")
        pieces = self.log_source.open(pod["metadata"]["uid"], wanted)
        response = await _stream(request, "text/plain")
        try:
            async for piece in pieces:
                if piece and not await _write(response, piece):
                    return response
            await response.write_eof()
        except ConnectionError:  # the client left as the log ended
            raise
        except Exception:
            _log.exception("the log of %s/%s broke off", target.namespace, target.name)
            if request.transport is not None:
                request.transport.abort()
        return response


async def _read(request: web.Request) -> Request:
    """Read a request with its body."""
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        message = f"Request entity too large: limit is {BODY_LIMIT}"
        raise StatusError(413, "RequestEntityTooLarge", message) from error
    return Request(request.method, request.query, request.headers, body)


def _json(value: Any, code: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), status=code, content_type="application/json")


def _response(answer: Answer) -> web.Response:
    response = _json(answer.value, answer.code)
    for warning in answer.warnings:
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{escaped}"')
    return response


async def _stream(request: web.Request, content_type: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": content_type})
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response


async def _write(response: web.StreamResponse, data: bytes) -> bool:
    """Send a chunk of a stream; false where the client is gone."""
    try:
        await response.write(data)
    except ConnectionError:
        return False
    return True
