"""How a list of replicas is read: an entry's type and number, and the chief."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mxnet_operator.api.kinds import FIORAVANZO, MLKUBE, MXJOB

SCHEDULER: Final = "SCHEDULER"
SERVER: Final = "SERVER"
WORKER: Final = "WORKER"
LOCAL: Final = "local"
DIST: Final = "dist"
DEFAULT_TYPE: Final[Mapping[str, str]] = {
    MXJOB.group: WORKER,
    MLKUBE.group: WORKER,
    FIORAVANZO.group: SCHEDULER,
}
"""The type of an entry that names none, by group."""

Entry = Mapping[str, Any]


def type_of(entry: Entry, default: str) -> str:
    """The type of an entry."""
    return entry.get("mxReplicaType") or default


def type_in_cel(entry: str, default: str) -> str:
    """The same in CEL; `entry` is a variable."""
    return f"(has({entry}.mxReplicaType) && {entry}.mxReplicaType != '' ? {entry}.mxReplicaType : '{default}')"


def counts(entries: Iterable[Entry], default: str) -> Iterator[tuple[str, int]]:
    """Types and numbers of replicas."""
    for entry in entries:
        yield type_of(entry, default), entry.get("replicas", 1)


def count_of(entries: Iterable[Entry], wanted: str, default: str) -> int:
    """How many replicas of a type there are."""
    return sum(count for each, count in counts(entries, default) if each == wanted)


def chief_of(spec: Mapping[str, Any]) -> str | None:
    """The type that a spec names as the one whose end is the job's; None where it names none."""
    chief = (spec.get("terminationPolicy") or {}).get("chief")
    return None if chief is None else chief.get("replicaName") or SCHEDULER


def chief_asked_for(spec: Mapping[str, Any]) -> str | None:
    """The chief that a user has named; None for the one that the form's first operator wrote into every job.

    It left its RuntimeId in each job that it took, and made Scheduler 0 the chief where nothing else was said.
    """
    chief = chief_of(spec)
    return None if chief == SCHEDULER and spec.get("RuntimeId") else chief
