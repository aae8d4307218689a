"""Readers of a list of replicas: an entry's type and count, and the chief."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

SCHEDULER: Final = "SCHEDULER"
SERVER: Final = "SERVER"
WORKER: Final = "WORKER"
LOCAL: Final = "local"
DIST: Final = "dist"

Entry = Mapping[str, Any]


def type_of(entry: Entry, default: str) -> str:
    return entry.get("mxReplicaType") or default


def type_in_cel(entry: str, default: str) -> str:
    """Return the CEL expression for the type of an entry; `entry` is a variable."""
    return f"(has({entry}.mxReplicaType) && {entry}.mxReplicaType != '' ? {entry}.mxReplicaType : '{default}')"


def counts(entries: Iterable[Entry], default: str) -> Iterator[tuple[str, int]]:
    for entry in entries:
        yield type_of(entry, default), entry.get("replicas", 1)


def count_of(entries: Iterable[Entry], wanted: str, default: str) -> int:
    return sum(count for each, count in counts(entries, default) if each == wanted)


def chief_of(spec: Mapping[str, Any]) -> str | None:
    """Return the type that a spec names as its chief, whose end is the job's; None where it names none."""
    chief = (spec.get("terminationPolicy") or {}).get("chief")
    return None if chief is None else chief.get("replicaName") or SCHEDULER


def chief_asked_for(spec: Mapping[str, Any]) -> str | None:
    """Return the chief that a user has named; None for the one that the format's first operator wrote into every job.

    It left its RuntimeId in each job that it took, and made Scheduler 0 the chief where nothing else was said.
    """
    chief = chief_of(spec)
    return None if chief == SCHEDULER and spec.get("RuntimeId") else chief
