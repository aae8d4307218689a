"""Requests of the API: which resource a path means, and what its query asks for."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mxnet_operator.local.apiserver import protobuf
from mxnet_operator.local.apiserver.json_values import at
from mxnet_operator.local.apiserver.resources import NAMESPACES, Catalog, Resource
from mxnet_operator.local.apiserver.selectors import Selector, field_selector, label_selector
from mxnet_operator.local.apiserver.statuses import bad_request, unsupported_media_type
from mxnet_operator.local.apiserver.store import DeleteOptions, WriteOptions
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
    if rest[:1] == ["namespaces"] and (group or (len(rest) > 2 and rest[2] not in NAMESPACES.subresources)):
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


def media_type(request: Request) -> str:
    """Return the media type of the body; JSON by default."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower() or _JSON


def read_json(request: Request, accepted: str = _JSON) -> Any:
    """Decode the body.

    Raises:
        StatusError: 400 where it isn't JSON, 415 for another media type.
    """
    if media_type(request) != accepted:
        raise unsupported_media_type((accepted,))
    try:
        return msgspec.json.decode(request.body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error


def read_object(request: Request) -> Any:
    """Decode the body of a creation, an update or a deletion: JSON, or protobuf for a few built-in kinds.

    Raises:
        StatusError: 400 where it can't be decoded, 415 for another media type or kind.
    """
    if media_type(request) != protobuf.MEDIA_TYPE:
        return read_json(request)
    try:
        return protobuf.read_object(request.body)
    except protobuf.ProtobufError as error:
        raise unsupported_media_type((_JSON,)) from error


def write_options(request: Request, target: Target) -> WriteOptions:
    query = request.query
    return WriteOptions(target.subresource, query.get("dryRun") == "All", query.get("fieldValidation", "") or "Warn")


def object_selector(target: Target, query: Mapping[str, str]) -> Selector:
    labels = label_selector(query.get("labelSelector", ""))
    fields = field_selector(query.get("fieldSelector", ""), target.resource)
    return lambda obj: labels(obj) and fields(obj)


def delete_options(request: Request) -> DeleteOptions:
    """Parse DeleteOptions from the body (often without kind, often missing) and the query.

    Raises:
        StatusError: 400 where something is of the wrong type, 415 for another media type.
    """
    body: Any = read_object(request) if request.body.strip() else {}
    if not isinstance(body, dict):
        raise bad_request("the body is not a DeleteOptions")
    grace: Any = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    if isinstance(grace, str) and grace.isdigit():
        grace = int(grace)
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise bad_request("json: cannot unmarshal into Go struct field DeleteOptions.gracePeriodSeconds of type int64")
    propagation = body.get("propagationPolicy") or request.query.get("propagationPolicy", "")
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
        object_selector(target, query),
        None if from_now else revision,
        truth(query.get("allowWatchBookmarks")),
        timeout,
    )


def _number(query: Mapping[str, str], field: str) -> int:
    text = query.get(field, "") or "0"
    if not (text.isascii() and text.isdigit()):
        raise bad_request(f'{field}: parsing "{text}": invalid syntax')
    return int(text)
