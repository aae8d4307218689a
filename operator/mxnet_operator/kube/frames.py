"""The parts of lists and watch events that a reflector reads itself; objects stay the bytes they came as."""

from typing import Final, Literal

import msgspec

from mxnet_operator.kube.answers import decoded

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    """Which object this is, in which version."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None

    @property
    def key(self) -> str:
        """`namespace/name`; the name alone for objects without namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def ends_initial_events(self) -> bool:
        """Whether this bookmark says that all that existed has been sent (KEP-3157)."""
        return (self.annotations or {}).get(INITIAL_EVENTS_END) == "true"


class _Object(msgspec.Struct, frozen=True):
    metadata: Meta


class Event(msgspec.Struct, frozen=True):
    """A line of a watch."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


class _PageMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, frozen=True):
    """A page of a list."""

    metadata: _PageMeta
    items: list[msgspec.Raw]


def event_of(line: bytes) -> Event:
    """A line of a watch.

    Raises:
        InvalidAnswerError: it is none.
    """
    return decoded(line, Event)


def meta_of(raw: bytes | msgspec.Raw) -> Meta:
    """The metadata of an object.

    Raises:
        InvalidAnswerError: it has none.
    """
    return decoded(raw, _Object).metadata
