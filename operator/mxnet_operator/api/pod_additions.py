"""What an integration adds to a pod beside its template: a queue the nodes of its quota, a gang scheduler its marks."""

from collections.abc import Mapping

import msgspec

Pairs = tuple[tuple[str, str], ...]


class Toleration(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Toleration of a pod."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PodAdditions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Additions to one pod: its node selector and annotations win over the template's."""

    node_selector: Pairs = ()
    tolerations: tuple[Toleration, ...] = ()
    labels: Pairs = ()
    annotations: Pairs = ()
    scheduling_gates: tuple[str, ...] = ()


def pairs(of: Mapping[str, str] | None) -> Pairs:
    """Turn a mapping into what can be compared and hashed."""
    return tuple(sorted((of or {}).items()))
