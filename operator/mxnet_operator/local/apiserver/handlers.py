"""The verbs: each takes a request about a resource to the store and answers with what comes back."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any

import msgspec
from aiohttp import web

from mxnet_operator.local.apiserver import resources as builtin
from mxnet_operator.local.apiserver.builtin_types import DecodeError
from mxnet_operator.local.apiserver.json_values import Object, at
from mxnet_operator.local.apiserver.logs import LogSource, log_request
from mxnet_operator.local.apiserver.paging import read_page
from mxnet_operator.local.apiserver.patch import patcher
from mxnet_operator.local.apiserver.requests import (
    delete_options,
    is_dry_run,
    media_type,
    object_selector,
    options_kind,
    read_json,
    truth,
    watch_options,
)
from mxnet_operator.local.apiserver.routing import Target
from mxnet_operator.local.apiserver.statuses import (
    StatusError,
    bad_request,
    invalid_options,
    method_not_allowed,
    success,
    unsupported,
)
from mxnet_operator.local.apiserver.store import OnUnknown, Store
from mxnet_operator.local.apiserver.tables import TableFormat, requested_table, table
from mxnet_operator.local.apiserver.watch import watch

_log = logging.getLogger(__name__)

WRITE_SECONDS = 60.0
"""How long a client may leave what is sent to it unread, before its connection is cut."""

_ANSWERED_WITH_OBJECT = (builtin.PODS, builtin.SERVICES, builtin.NAMESPACES)


class Handlers:
    """The verbs over one store."""

    def __init__(self, store: Store, log_source: LogSource | None) -> None:
        self.log_source = log_source
        self._closing = asyncio.Event()
        self._store = store

    def close(self) -> None:
        """End every watch."""
        self._closing.set()

    async def handle(self, request: web.Request, target: Target) -> web.StreamResponse:
        """Do what the request asks of its target."""
        resource, query = target.resource, request.query
        if target.subresource == "log":
            self._allow(request.method == "GET")
            return await self._log(request, target)
        if target.subresource == "binding":
            self._allow(request.method == "POST")
            return await self._bind(request, target)
        verbs = resource.verbs
        match request.method, bool(target.name):
            case "GET", False if truth(query.get("watch")):
                self._allow("watch" in verbs)
                return await self._watch(request, target)
            case "GET", False:
                self._allow("list" in verbs)
                return self._list(request, target)
            case "GET", True:
                self._allow("get" in verbs)
                return self._respond(request, target, self._store.get(resource, target.namespace, target.name))
            case "POST", False:
                self._allow("create" in verbs and (bool(target.namespace) or not resource.namespaced))
                return await self._create(request, target)
            case "PUT", True:
                self._allow("update" in verbs)
                return await self._update(request, target)
            case "PATCH", True:
                self._allow("patch" in verbs)
                return await self._patch(request, target)
            case "DELETE", True:
                self._allow("delete" in verbs and not target.subresource)
                return await self._delete(request, target)
            case "DELETE", False:
                self._allow("deletecollection" in verbs)
                return await self._delete_collection(request, target)
        raise method_not_allowed()

    @staticmethod
    def _allow(allowed: bool) -> None:
        if not allowed:
            raise method_not_allowed()

    def _list(self, request: web.Request, target: Target) -> web.Response:
        selector = object_selector(target, request.query)
        page = read_page(self._store, target.resource, target.namespace, selector, request.query)
        return self._respond_list(request, target, page.items, page.metadata)

    async def _create(self, request: web.Request, target: Target) -> web.Response:
        body = await read_json(request)
        if target.resource is builtin.ACCESS_REVIEWS:
            if not isinstance(body, dict):
                raise bad_request("the object provided is unrecognized (must be of type SelfSubjectAccessReview)")
            return json_response(body | {"status": {"allowed": True}}, 201)
        warnings: list[str] = []
        obj = self._store.create(
            target.resource,
            target.namespace,
            body,
            dry_run=is_dry_run(request),
            on_unknown=_unknown_fields(request, warnings),
        )
        return self._respond(request, target, obj, 201, warnings)

    async def _update(self, request: web.Request, target: Target) -> web.Response:
        body = await read_json(request)
        warnings: list[str] = []
        obj = self._store.update(
            target.resource,
            target.namespace,
            target.name,
            body,
            subresource=target.subresource,
            dry_run=is_dry_run(request),
            on_unknown=_unknown_fields(request, warnings),
        )
        return self._respond(request, target, obj, 200, warnings)

    async def _patch(self, request: web.Request, target: Target) -> web.Response:
        kind = media_type(request)
        patcher(target.resource, kind)
        patch = await read_json(request, kind)
        warnings: list[str] = []
        obj = self._store.patch(
            target.resource,
            target.namespace,
            target.name,
            kind,
            patch,
            subresource=target.subresource,
            dry_run=is_dry_run(request),
            on_unknown=_unknown_fields(request, warnings),
        )
        return self._respond(request, target, obj, 200, warnings)

    async def _bind(self, request: web.Request, target: Target) -> web.Response:
        self._store.bind(target.namespace, target.name, await read_json(request))
        return json_response(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        )

    async def _delete(self, request: web.Request, target: Target) -> web.Response:
        options = await delete_options(request)
        obj, gone = self._store.delete(target.resource, target.namespace, target.name, options)
        if gone and target.resource not in _ANSWERED_WITH_OBJECT:
            return json_response(success(target.resource, target.name, obj["metadata"]["uid"]))
        return self._respond(request, target, obj)

    async def _delete_collection(self, request: web.Request, target: Target) -> web.Response:
        options = await delete_options(request)
        resource, deleted = target.resource, []
        for obj in self._store.select(resource, target.namespace, object_selector(target, request.query)):
            namespace = obj["metadata"].get("namespace", "")
            deleted.append(self._store.delete(resource, namespace, obj["metadata"]["name"], options)[0])
        metadata = {"resourceVersion": str(self._store.storage.revision)}
        return self._respond_list(request, target, deleted, metadata)

    async def _watch(self, request: web.Request, target: Target) -> web.StreamResponse:
        options = watch_options(target, request.query)
        form = _table_format(request)
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
                if frames and not await _write(request, response, bytes(frames)):
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
        uid = pod["metadata"]["uid"]
        pieces = self.log_source.open(target.namespace, target.name, uid, wanted.container, **wanted.options)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            async for piece in pieces:
                if piece and not await _write(request, response, piece):
                    return response
            await response.write_eof()
        except Exception:
            _log.exception("the log of %s/%s broke off", target.namespace, target.name)
            _cut_off(request)
        return response

    def _respond(
        self, request: web.Request, target: Target, obj: Object, code: int = 200, warnings: Sequence[str] = ()
    ) -> web.Response:
        form = _table_format(request)
        if form is not None:
            metadata = {"resourceVersion": at(obj, "metadata", "resourceVersion", default="")}
            obj = table(target.resource, [obj], form, self._store.clock(), metadata)
        response = json_response(obj, code)
        for warning in warnings:
            escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
            response.headers.add("Warning", f'299 - "{escaped}"')
        return response

    def _respond_list(
        self, request: web.Request, target: Target, items: Sequence[Object], metadata: Object
    ) -> web.Response:
        resource, form = target.resource, _table_format(request)
        if form is not None:
            return json_response(table(resource, items, form, self._store.clock(), metadata))
        if not resource.custom:  # the list says what they are, for all of them
            items = [{key: value for key, value in item.items() if key not in ("apiVersion", "kind")} for item in items]
        listed = {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata, "items": items}
        return json_response(listed)


def json_response(value: Any, code: int = 200) -> web.Response:
    """A value as the answer to a request."""
    return web.Response(body=msgspec.json.encode(value), status=code, content_type="application/json")


def _table_format(request: web.Request) -> TableFormat | None:
    return requested_table(request.headers.get("Accept", ""), request.query.get("includeObject", ""))


def _unknown_fields(request: web.Request, warnings: list[str]) -> OnUnknown:
    """What the request wants done about unknown fields: refuse (Strict), say so in `warnings` (Warn), or nothing."""
    wanted = request.query.get("fieldValidation", "") or "Warn"
    if wanted not in ("Ignore", "Warn", "Strict"):
        error = unsupported("fieldValidation", wanted, ("", "Ignore", "Strict", "Warn"))
        raise invalid_options(options_kind(request), [error])

    def found(paths: list[str]) -> None:
        sentences = [f'unknown field "{path}"' for path in paths]
        if sentences and wanted == "Strict":
            raise DecodeError(f"strict decoding error: {', '.join(sentences)}")
        if wanted == "Warn":
            warnings.extend(sentences)

    return found


async def _write(request: web.Request, response: web.StreamResponse, data: bytes) -> bool:
    """Send a piece of a stream; False where the client is gone, or stopped reading and has been cut off."""
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await response.write(data)
    except TimeoutError:
        _log.warning("%s read nothing for %s s: cut off", request.remote, WRITE_SECONDS)
        _cut_off(request)
        return False
    except ConnectionError:
        return False
    return True


def _cut_off(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
