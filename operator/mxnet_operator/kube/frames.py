"""The parts of lists and watch events that a reflector reads itself; objects stay the bytes they came as."""

from typing import Final

import msgspec

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

    type: str
    object: msgspec.Raw


class _PageMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, frozen=True):
    """A page of a list."""

    metadata: _PageMeta
    items: list[msgspec.Raw]


_objects: Final = msgspec.json.Decoder(_Object)
events: Final = msgspec.json.Decoder(Event)
pages: Final = msgspec.json.Decoder(Page)


def meta_of(raw: bytes | msgspec.Raw) -> Meta:
    """The metadata of an object."""
    return _objects.decode(raw).metadata
