"""HTTP handlers of the verbs: read a request, write its response, stream watches and logs."""

import asyncio
import contextlib
import logging
from typing import Any

import msgspec
from aiohttp import web

from mxnet_operator.local.apiserver import resources as builtin
from mxnet_operator.local.apiserver.json_values import Object, at
from mxnet_operator.local.apiserver.logs import LogSource, log_request
from mxnet_operator.local.apiserver.requests import BODY_LIMIT, Request, Target, truth, watch_options
from mxnet_operator.local.apiserver.statuses import StatusError
from mxnet_operator.local.apiserver.store import Store
from mxnet_operator.local.apiserver.tables import TableFormat, table
from mxnet_operator.local.apiserver.verbs import Answer, Verbs, allow, table_format
from mxnet_operator.local.apiserver.watch import watch

_log = logging.getLogger(__name__)


class Handlers:
    """HTTP handlers of one store."""

    def __init__(self, store: Store, log_source: LogSource | None) -> None:
        self.log_source = log_source
        self._closing = asyncio.Event()
        self._store = store
        self._verbs = Verbs(store)

    def close(self) -> None:
        """End every watch."""
        self._closing.set()

    async def handle(self, request: web.Request, target: Target) -> web.StreamResponse:
        if target.subresource == "log":
            allow(request.method == "GET")
            return await self._log(request, target)
        if request.method == "GET" and not target.name and truth(request.query.get("watch")):
            allow("watch" in target.resource.verbs)
            return await self._watch(request, target)
        return _response(self._verbs.answer(await _read(request), target))

    async def _watch(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = watch_options(target, request.query)
        form = table_format(Request(request.method, request.query, request.headers))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        headings = True
        async with contextlib.aclosing(watch(self._store, options, self._closing)) as batches:
            async for events in batches:
                frames = bytearray()
                for kind, obj in events:
                    shown = self._framed(target, kind, obj, form, headings)
                    headings = headings and shown is obj
                    frames += msgspec.json.encode({"type": kind, "object": shown}) + b"\n"
                if frames and not await _write(response, bytes(frames)):
                    return response
        await response.write_eof()
        return response

    def _framed(self, target: Target, kind: str, obj: Object, form: TableFormat | None, headings: bool) -> Object:
        if form is None or kind == "ERROR":
            return obj
        metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        return table(target.resource, [obj], form, self._store.clock(), metadata, headings=headings)

    async def _log(self, request: web.Request, target: Target) -> web.StreamResponse:
        pod = self._store.get(builtin.PODS, target.namespace, target.name)
        wanted = log_request(pod, request.query)
        if not at(pod, "spec", "nodeName"):
            return web.Response(status=204)
        if self.log_source is None:
            raise StatusError(500, "InternalError", "no kubelet is running that has the logs of this pod")
        pieces = self.log_source.open(pod["metadata"]["uid"], wanted)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
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


def json_response(value: Any, code: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), status=code, content_type="application/json")


async def _read(request: web.Request) -> Request:
    """Read a request with its body."""
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        message = f"Request entity too large: limit is {BODY_LIMIT}"
        raise StatusError(413, "RequestEntityTooLarge", message) from error
    return Request(request.method, request.query, request.headers, body)


def _response(answer: Answer) -> web.Response:
    response = json_response(answer.value, answer.code)
    for warning in answer.warnings:
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{escaped}"')
    return response


async def _write(response: web.StreamResponse, data: bytes) -> bool:
    """Send a chunk of a stream; false where the client is gone."""
    try:
        await response.write(data)
    except ConnectionError:
        return False
    return True
