"""Replicas of a job, each with its outcome: the one reading of pods that all policies share."""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final

import msgspec

from mxnet_operator.api.conditions import RUNNING, is_true
from mxnet_operator.api.replica_types import TYPES, ReplicaType
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.attempt import restart_scope
from mxnet_operator.plan.disruption import EVICTED
from mxnet_operator.plan.indexes import parse_indexes
from mxnet_operator.plan.joining import all_have_existed, last_created
from mxnet_operator.plan.observed import Observed, PodView
from mxnet_operator.readers.pods import outcome_from


class Outcome(Enum):
    """State of a replica."""

    MISSING = "missing"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
    """Deleted by someone else, or missing after the gang had started: no other pod can take its place (ps-lite)."""


NAMED: Final = 5
"""Maximum number of replicas that a message names."""
_HAVE_RUN: Final = frozenset({"Running", "Succeeded", "Unknown"})
"""Phases of pods whose containers have started; a pod is Unknown when its node has stopped reporting on it."""


class Replica(msgspec.Struct, frozen=True):
    """Replica that the job asks for, with its pod and its outcome."""

    type: str
    index: int
    outcome: Outcome
    pod: PodView | None

    @property
    def label(self) -> str:
        """Name in messages and on the command line: `worker-1`."""
        return f"{self.type.lower()}-{self.index}"

    @property
    def started(self) -> bool:
        """Whether its processes have run, even if they have ended since."""
        return self.outcome is Outcome.DONE or (
            self.pod is not None and (self.pod.phase in _HAVE_RUN or self.pod.exit_code is not None)
        )


def replicas_of(job: MXJob, observed: Observed) -> tuple[Replica, ...]:
    """Return every replica that a job with defaults asks for, in the order in which their pods are created.

    `observed` has the pods of the present attempt only.
    """
    pods = {(pod.type, pod.index): pod for pod in observed.pods}
    ran = _has_run(job, observed.pods)
    return tuple(
        Replica(replica_type, index, _outcome(pod, done=index in done, ran=ran), pod)
        for replica_type, spec in job.spec.mx_replica_specs.items()
        for done in (parse_indexes(job.status.completed_indexes.get(replica_type, "")),)
        for index in range(spec.replicas or 0)
        for pod in (pods.get((replica_type, index)),)
    )


def of_types(replicas: Iterable[Replica], *types: str) -> tuple[Replica, ...]:
    """Return the replicas of the given types."""
    return tuple(replica for replica in replicas if replica.type in types)


def those(replicas: Iterable[Replica], holds: Callable[[ReplicaType], bool]) -> tuple[Replica, ...]:
    """Return the replicas whose type satisfies a predicate."""
    return tuple(replica for replica in replicas if holds(TYPES[replica.type]))


def labels(replicas: Sequence[Replica]) -> str:
    """Return the names of the first replicas, and how many more there are: `worker-0, worker-1 and 3 more`."""
    named = ", ".join(replica.label for replica in replicas[:NAMED])
    return named + (f" and {len(replicas) - NAMED} more" if len(replicas) > NAMED else "")


def has_type(replicas: Iterable[Replica], replica_type: str) -> bool:
    """Return whether the job asks for at least one replica of the type."""
    return any(replica.type == replica_type for replica in replicas)


def is_tuning(replicas: Iterable[Replica]) -> bool:
    """Return whether the job tunes (MXTune): it has a Tuner, whose success ends it."""
    return bool(those(replicas, lambda each: each.works and each.tunes))


def _has_run(job: MXJob, pods: tuple[PodView, ...]) -> bool:
    """Return whether a gang has run, seen or not: all of it have existed, and one has ended or one left has started.

    In which order another operator created its gang is unknown: there one that has ended says so alone.
    """
    if is_true(job.status.conditions, RUNNING):
        return True
    one_has_ended = bool(job.status.completed_indexes) or any(pod.exit_code is not None for pod in pods)
    if last_created(job) is None:
        return one_has_ended and restart_scope(job) == "Job"
    return (one_has_ended or any(pod.phase in _HAVE_RUN for pod in pods)) and all_have_existed(job, pods)


def _outcome(pod: PodView | None, *, done: bool, ran: bool) -> Outcome:
    if done:
        return Outcome.DONE
    if pod is None:
        return Outcome.LOST if ran else Outcome.MISSING
    ended = outcome_from(
        phase=pod.phase,
        pod_reason=pod.pod_reason,
        exit_code=pod.exit_code,
        reason=pod.reason,
        deleting=pod.deleting,
        stop_requested=pod.stop_requested,
    )
    if pod.was_removed and (pod.deleting or ended != "unfinished"):
        return Outcome.LOST
    if pod.end_is_unknown and pod.pod_reason != EVICTED:
        return Outcome.LOST
    if ended in ("failed", "stopped"):
        return Outcome.FAILED
    if ended == "succeeded":
        return Outcome.DONE
    return Outcome.RUNNING if pod.phase in _HAVE_RUN else Outcome.WAITING
