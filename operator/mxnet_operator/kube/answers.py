"""Decoding and checking of the API server's responses; objects in lists and watch events stay raw bytes.

Proxies, gateways and login pages answer in place of a server, with 200 and HTML, `null` or `{}`. Such a response is an
InvalidAnswerError, which callers treat as an outage: they retry, and a write may have been carried out.
"""

from typing import Any, Final, Literal, TypeVar

import msgspec

from mxnet_operator.kube.errors import InvalidAnswerError

T = TypeVar("T")

_SHOWN: Final = 120
"""Characters of an invalid response that its error quotes."""
SILENCE_SECONDS: Final = 80.0
"""Seconds without a byte after which a watch counts as dead: servers send a bookmark every minute."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class Shape(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the expected shapes of responses: fields that are present have their type, unknown fields are skipped."""


class _Owner(Shape, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(Shape, frozen=True):
    """Fields that are read from any object's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    deletion_timestamp: str | None = None


class AnyObject(Shape, frozen=True):
    """Object of any kind, or a Status."""

    metadata: Metadata


class _StoredMetadata(Metadata, frozen=True, kw_only=True):
    uid: str
    resource_version: str


class Stored(Shape, frozen=True):
    """Stored object of any kind, as in the response to a write."""

    metadata: _StoredMetadata


class _ListMeta(Shape, frozen=True):
    resource_version: str
    continue_: str = msgspec.field(default="", name="continue")


class AnyList(Shape, frozen=True):
    """List of objects of any kind, or a page of one."""

    metadata: _ListMeta
    items: list[Stored]


class _ApiResource(Shape, frozen=True):
    name: str


class ApiResources(Shape, frozen=True):
    """Resources that a group version serves (APIResourceList)."""

    resources: list[_ApiResource]


class _LeaseSpec(Shape, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Shape, frozen=True):
    """Lease, which may have no holder."""

    metadata: Metadata
    spec: _LeaseSpec | None = None


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    """Identity and resourceVersion of an object."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None

    @property
    def key(self) -> str:
        """Cache key: `namespace/name`, or the name alone for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def ends_initial_events(self) -> bool:
        """Whether this bookmark ends the initial events of a watch list (KEP-3157)."""
        return (self.annotations or {}).get(INITIAL_EVENTS_END) == "true"


class _Object(msgspec.Struct, frozen=True):
    metadata: Meta


class Event(msgspec.Struct, frozen=True):
    """Line of a watch."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


class Page(msgspec.Struct, frozen=True):
    """Page of a list."""

    metadata: _ListMeta
    items: list[msgspec.Raw]


def decoded(body: bytes | msgspec.Raw, as_a: type[T]) -> T:
    """Decode JSON into a value of this type.

    Raises:
        InvalidAnswerError: the JSON is not of this type.
    """
    try:
        return msgspec.json.decode(body, type=as_a)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # invalid UTF-8, brackets without end
        raise InvalidAnswerError(f"{error}: {_quoted(bytes(body))}") from error


def meta_of(raw: bytes | msgspec.Raw) -> Meta:
    """Decode the metadata of an object.

    Raises:
        InvalidAnswerError: it has none.
    """
    return decoded(raw, _Object).metadata


def document(body: bytes, shape: type[Shape]) -> dict[str, Any]:
    """Decode a JSON object with all of its fields; the fields that `shape` names must have its types.

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
