"""Frames of lists and watch events, as a reflector decodes them; the objects in them stay raw bytes."""

from typing import Final, Literal

import msgspec

from mxnet_operator.kube.answers import ListMeta, decoded

SILENCE_SECONDS: Final = 80.0
"""Seconds without a byte after which a watch counts as dead: servers send a bookmark every minute."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


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

    metadata: ListMeta
    items: list[msgspec.Raw]


def meta_of(raw: bytes | msgspec.Raw) -> Meta:
    """Decode the metadata of an object.

    Raises:
        InvalidAnswerError: it has none.
    """
    return decoded(raw, _Object).metadata
