"""What an answer must look like to be believed: everything that a server sends is decoded here, and nowhere else.

Proxies, gateways and login pages answer for a server, with 200 and HTML, `null` or `{}`. Such an answer is an
InvalidAnswerError, which is an outage to whoever asked: it is waited out, and a write may have been carried out.
"""

from typing import Any, Final, TypeVar

import msgspec

from mxnet_operator.kube.errors import InvalidAnswerError

T = TypeVar("T")

_SHOWN: Final = 120
"""Characters of an odd answer that its error quotes."""


class Shape(msgspec.Struct, frozen=True, rename="camel"):
    """Base of what answers must look like: a field has its type where it is there, unknown ones are skipped."""


class _Owner(Shape, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(Shape, frozen=True):
    """What is read of any object's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    deletion_timestamp: str | None = None


class AnyObject(Shape, frozen=True):
    """An object of any kind, or a Status."""

    metadata: Metadata


class _StoredMetadata(Metadata, frozen=True, kw_only=True):
    uid: str
    resource_version: str


class Stored(Shape, frozen=True):
    """An object as it is stored: what a write is answered with."""

    metadata: _StoredMetadata


class _ListMeta(Shape, frozen=True):
    resource_version: str
    continue_: str = msgspec.field(default="", name="continue")


class AnyList(Shape, frozen=True):
    """A list of objects of any kind, or a page of one."""

    metadata: _ListMeta
    items: list[AnyObject]


class _ApiResource(Shape, frozen=True):
    name: str


class ApiResources(Shape, frozen=True):
    """What a group and version serves."""

    resources: list[_ApiResource]


class _LeaseSpec(Shape, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Shape, frozen=True):
    """A Lease, which may be nobody's."""

    metadata: Metadata
    spec: _LeaseSpec | None = None


def decoded(body: bytes | msgspec.Raw, as_a: type[T]) -> T:
    """A value of this type from JSON.

    Raises:
        InvalidAnswerError: it is none.
    """
    try:
        return msgspec.json.decode(body, type=as_a)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # invalid UTF-8, brackets without end
        raise InvalidAnswerError(f"{error}: {_quoted(bytes(body))}") from error


def document(body: bytes, shape: type[Shape]) -> dict[str, Any]:
    """A whole JSON object, all its fields kept, whose fields that `shape` names have the types that it gives.

    Raises:
        InvalidAnswerError: it is something else.
    """
    found: dict[str, Any] = decoded(body, dict[str, Any])
    try:
        msgspec.convert(found, shape)
    except msgspec.ValidationError as error:
        raise InvalidAnswerError(f"{error}: {_quoted(body)}") from error
    return found


def _quoted(body: bytes) -> str:
    text = body[: 4 * _SHOWN].decode("utf-8", "replace")
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + " ...")
