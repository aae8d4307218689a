"""Requests of the API: which resource a path means, what a query asks for, and the verbs with an immediate response.

No HTTP and no waiting: `server` speaks HTTP for them, and a simulation asks them from within its process.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mxnet_operator.local.apiserver import protobuf
from mxnet_operator.local.apiserver import resources as builtin
from mxnet_operator.local.apiserver.json_values import Object, at
from mxnet_operator.local.apiserver.patch import patcher
from mxnet_operator.local.apiserver.resources import Catalog, Resource
from mxnet_operator.local.apiserver.selectors import Selector, field_selector, label_selector
from mxnet_operator.local.apiserver.statuses import (
    bad_request,
    method_not_allowed,
    success,
    too_large_version,
    unsupported_media_type,
)
from mxnet_operator.local.apiserver.store import DeleteOptions, Store, WriteOptions
from mxnet_operator.local.apiserver.tables import table, wants_table
from mxnet_operator.local.apiserver.watch import WatchOptions


@dataclass(frozen=True)
class Target:
    """Target of a request: a resource, one of its objects, or a subresource of the object."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def find_target(catalog: Catalog, path: str) -> Target | None:
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    namespace = ""
    if rest[:1] == ["namespaces"] and (group or (len(rest) > 2 and rest[2] not in builtin.NAMESPACES.subresources)):
        namespace, rest = "/".join(rest[1:2]), rest[2:]
    if not rest or len(rest) > 3 or not all(rest):
        return None
    resource = catalog.find(group, version, rest[0])
    if resource is None:
        return None
    name, subresource = [*rest[1:], "", ""][:2]
    if subresource and subresource not in resource.subresources:
        return None
    if resource.namespaced != bool(namespace) and (namespace or name):
        return None
    return Target(resource, namespace, name, subresource)


BODY_LIMIT = 3 * 1024 * 1024
"""Largest request body in bytes, as in kube-apiserver."""

_JSON = "application/json"
_WATCH_SECONDS = 1800.0


def truth(text: str | None) -> bool:
    """Parse a boolean query parameter: Go clients send `true`, Python clients `True`."""
    return text is not None and text.lower() not in ("false", "0")


@dataclass(frozen=True, slots=True)
class Request:
    """Request with its whole body, over HTTP or from within the process."""

    method: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Headers by their canonical name, such as `Content-Type`."""
    body: bytes = b""


def _media_type(request: Request) -> str:
    """Return the media type of the body; JSON by default."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower() or _JSON


def _read_json(request: Request, accepted: str = _JSON) -> Any:
    """Decode the body.

    Raises:
        StatusError: 400 where it isn't JSON, 415 for another media type.
    """
    if _media_type(request) != accepted:
        raise unsupported_media_type((accepted,))
    try:
        return msgspec.json.decode(request.body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error


def _read_object(request: Request) -> Any:
    """Decode the body of a creation, an update or a deletion: JSON, or protobuf for a few built-in kinds.

    Raises:
        StatusError: 400 where it can't be decoded, 415 for another media type or kind.
    """
    if _media_type(request) != protobuf.MEDIA_TYPE:
        return _read_json(request)
    try:
        return protobuf.read_object(request.body)
    except protobuf.ProtobufError as error:
        raise unsupported_media_type((_JSON,)) from error


def _write_options(request: Request, target: Target) -> WriteOptions:
    query = request.query
    return WriteOptions(target.subresource, query.get("dryRun") == "All", query.get("fieldValidation", "") or "Warn")


def _object_selector(target: Target, query: Mapping[str, str]) -> Selector:
    labels = label_selector(query.get("labelSelector", ""))
    fields = field_selector(query.get("fieldSelector", ""), target.resource)
    return lambda obj: labels(obj) and fields(obj)


def _delete_options(request: Request) -> DeleteOptions:
    """Parse DeleteOptions from the body (often without kind, often missing) and the query.

    Raises:
        StatusError: 400 where something is of the wrong type, 415 for another media type.
    """
    body: Any = _read_object(request) if request.body.strip() else {}
    if not isinstance(body, dict):
        raise bad_request("the body is not a DeleteOptions")
    grace: Any = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    if isinstance(grace, str) and grace.isdigit():
        grace = int(grace)
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise bad_request("json: cannot unmarshal into Go struct field DeleteOptions.gracePeriodSeconds of type int64")
    propagation = body.get("propagationPolicy") or request.query.get("propagationPolicy", "")
    if propagation == "Orphan":
        raise bad_request("propagationPolicy: the local cluster doesn't support Orphan")
    return DeleteOptions(
        grace,
        propagation,
        at(body, "preconditions", "uid"),
        at(body, "preconditions", "resourceVersion"),
        request.query.get("dryRun") == "All" or body.get("dryRun") == ["All"],
    )


def watch_options(target: Target, query: Mapping[str, str]) -> WatchOptions:
    """Parse the options of a watch.

    Raises:
        StatusError: 400 where a number is none.
    """
    send_initial = query.get("sendInitialEvents")
    revision = _number(query, "resourceVersion")
    from_now = revision == 0 if send_initial is None else truth(send_initial)
    # unless the client says, half an hour to an hour: many watches begun together then don't end together
    timeout = float(_number(query, "timeoutSeconds")) or random.uniform(_WATCH_SECONDS, 2 * _WATCH_SECONDS)  # noqa: S311
    return WatchOptions(
        target.resource,
        target.namespace,
        _object_selector(target, query),
        None if from_now else revision,
        truth(query.get("allowWatchBookmarks")),
        timeout,
    )


def _number(query: Mapping[str, str], field: str) -> int:
    text = query.get(field, "") or "0"
    if not (text.isascii() and text.isdigit()):
        raise bad_request(f'{field}: parsing "{text}": invalid syntax')
    return int(text)


_ANSWERED_WITH_OBJECT = (builtin.PODS, builtin.SERVICES, builtin.NAMESPACES)


@dataclass(frozen=True, slots=True)
class Answer:
    """Response of a verb: a JSON value, which may be the stored object itself, and texts for Warning headers."""

    value: Any
    code: int = 200
    warnings: Sequence[str] = ()


class Verbs:
    """Verbs over one store, except watches and logs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def answer(self, request: Request, target: Target) -> Answer:
        """Handle a request to its target.

        Raises:
            StatusError: it is rejected.
        """
        resource, verbs = target.resource, target.resource.verbs
        if target.subresource == "binding":
            allow(request.method == "POST")
            return self._bind(request, target)
        match request.method, bool(target.name):
            case "GET", False:
                allow("list" in verbs)
                return self._list(request, target)
            case "GET", True:
                allow("get" in verbs)
                return self._object(request, target, self._store.get(resource, target.namespace, target.name))
            case "POST", False:
                allow("create" in verbs and bool(target.namespace) == resource.namespaced)
                return self._create(request, target)
            case "PUT", True:
                allow("update" in verbs)
                return self._update(request, target)
            case "PATCH", True:
                allow("patch" in verbs)
                return self._patch(request, target)
            case "DELETE", True:
                allow("delete" in verbs and not target.subresource)
                return self._delete(request, target)
        raise method_not_allowed()

    def _list(self, request: Request, target: Target) -> Answer:
        """Answer with the whole list as it is now: the API lets a server ignore `limit`."""
        asked, newest = _number(request.query, "resourceVersion"), self._store.storage.revision
        _number(request.query, "limit")
        if asked > newest:
            raise too_large_version(asked, newest)
        if request.query.get("continue") or (asked and request.query.get("resourceVersionMatch") == "Exact"):
            raise bad_request("the local cluster lists what there is now, whole: no continue, no Exact version")
        resource, metadata = target.resource, {"resourceVersion": str(newest)}
        items = self._store.select(resource, target.namespace, _object_selector(target, request.query))
        if wants_table(request.headers):
            return Answer(table(resource, items, self._store.clock(), metadata))
        if not resource.custom:  # the list says what they are, for all of them
            items = [{key: value for key, value in item.items() if key not in ("apiVersion", "kind")} for item in items]
        return Answer(
            {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata, "items": items}
        )

    def _create(self, request: Request, target: Target) -> Answer:
        body, options = _read_object(request), _write_options(request, target)
        obj = self._store.create(target.resource, target.namespace, body, options)
        return self._object(request, target, obj, 201, options.warnings)

    def _update(self, request: Request, target: Target) -> Answer:
        body, options = _read_object(request), _write_options(request, target)
        obj = self._store.update(target.resource, target.namespace, target.name, body, options)
        return self._object(request, target, obj, 200, options.warnings)

    def _patch(self, request: Request, target: Target) -> Answer:
        kind = _media_type(request)
        patcher(target.resource, kind)
        patch, options = _read_json(request, kind), _write_options(request, target)
        obj = self._store.patch(target.resource, target.namespace, target.name, kind, patch, options=options)
        return self._object(request, target, obj, 200, options.warnings)

    def _bind(self, request: Request, target: Target) -> Answer:
        self._store.bind(target.namespace, target.name, _read_json(request))
        return Answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)

    def _delete(self, request: Request, target: Target) -> Answer:
        options = _delete_options(request)
        obj, gone = self._store.delete(target.resource, target.namespace, target.name, options)
        if gone and target.resource not in _ANSWERED_WITH_OBJECT:
            return Answer(success(target.resource, target.name, obj["metadata"]["uid"]))
        return self._object(request, target, obj)

    def _object(
        self, request: Request, target: Target, obj: Object, code: int = 200, warnings: Sequence[str] = ()
    ) -> Answer:
        if wants_table(request.headers):
            metadata = {"resourceVersion": at(obj, "metadata", "resourceVersion", default="")}
            obj = table(target.resource, [obj], self._store.clock(), metadata)
        return Answer(obj, code, warnings)


def allow(allowed: bool) -> None:
    """Raise StatusError (405) unless the resource has the verb."""
    if not allowed:
        raise method_not_allowed()
