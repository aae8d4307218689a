"""Replicas of a job, each with its state: the one reading of pods that all policies share.

The status records the number of the attempt before any pod is deleted. So a failure counts exactly once, however often
and by whichever controller it is observed: the exit of a pod of an earlier attempt no longer counts.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import groupby
from typing import Final, Literal

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.replica_types import TYPES, ReplicaType
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan.actions import CreatePod
from mxnet_operator.plan.observed import EVICTED, Observed, PodView
from mxnet_operator.readers.enumeration import first_names
from mxnet_operator.readers.pods import outcome_from

NAMED: Final = 5
"""Maximum number of replicas that a message names."""
_HAVE_RUN: Final = frozenset({"Running", "Succeeded", "Unknown"})
"""Phases of pods whose containers have started; a pod is Unknown when its node has stopped reporting on it."""


class ReplicaState(Enum):
    """State of a replica."""

    MISSING = "missing"
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
    """Deleted by someone else, or missing after the gang had started: no other pod can take its place (ps-lite)."""


class Replica(msgspec.Struct, frozen=True):
    """Replica that the job asks for, with its pod and its state."""

    type: str
    index: int
    state: ReplicaState
    pod: PodView | None

    @property
    def label(self) -> str:
        """Name in messages and on the command line: `worker-1`."""
        return f"{self.type.lower()}-{self.index}"

    @property
    def started(self) -> bool:
        """Whether its processes have run, even if they have ended since."""
        return self.state is ReplicaState.DONE or (
            self.pod is not None and (self.pod.phase in _HAVE_RUN or self.pod.exit_code is not None)
        )


def restart_scope(job: MXJob) -> Literal["Job", "Replica"]:
    """Return the default restartScope: Job where the replicas form a gang, else Replica.

    No member of a ps-lite gang can be replaced; tuning processes and a lone worker can.
    """
    if job.spec.run_policy.restart_scope is not None:
        return job.spec.run_policy.restart_scope
    specs = job.spec.specs_in_use
    if any(TYPES[replica_type].tunes for replica_type in specs):
        return "Replica"
    has_root = any(TYPES[replica_type].is_root for replica_type in specs)
    workers = sum(spec.replicas or 0 for replica_type, spec in specs.items() if TYPES[replica_type].works)
    return "Job" if has_root or workers > 1 else "Replica"


def replicas_in(job: MXJob) -> int:
    """Return how many replicas a job with defaults has."""
    return sum(spec.replicas or 0 for spec in job.spec.mx_replica_specs.values())


def is_begun(status: MXJobStatus) -> bool:
    """Return whether a job was reconciled, by any operator: it may have pods, and its notices were posted.

    An operator that creates pods writes startTime: older ones and earlier versions of this one, too.
    """
    if not status.conditions:
        return False
    is_told_of = any(each.type == conditions.RECONCILE_ERROR for each in status.conditions)
    has_run = status.start_time is not None or bool(status.started_replicas)
    return has_run or not is_told_of or conditions.state_of(status.conditions) != conditions.CREATED


def begins(status: MXJobStatus) -> bool:
    """Return whether the job hasn't said that it started, or was suspended: this controller made what pods it has."""
    return not is_begun(status) or conditions.is_true(status.conditions, conditions.SUSPENDED)


def pods_of_earlier_attempts(job: MXJob, observed: Observed) -> tuple[PodView, ...]:
    """Return the pods of earlier attempts, which are to be deleted and whose exits no longer count."""
    if restart_scope(job) == "Job":
        return tuple(pod for pod in observed.pods if pod.attempt < job.status.restarts)
    first, restarting = job.status.first_attempt, job.status.restarting_pods
    return tuple(pod for pod in observed.pods if pod.attempt < first or pod.uid in restarting)


def as_begun_anew(job: MXJob, status: MXJobStatus) -> MXJobStatus:
    """Return the status with which the next attempt begins: in scope Job with all replicas, also if some were done.

    A worker that failed after the others had ended could not run without them.
    """
    return msgspec.structs.replace(status, completed_indexes={}, result="") if restart_scope(job) == "Job" else status


def last_created(job: MXJob) -> tuple[str, int] | None:
    """Return type and index of the replica of a gang whose pod is created last; None where replicas restart one by one.

    None as well for a job that another operator started, since its order of creation is unknown.
    """
    status = job.status
    if restart_scope(job) != "Job" or not (begins(status) or status.started_replicas):
        return None
    types = tuple(job.spec.specs_in_use)
    root = next((replica_type for replica_type in types if TYPES[replica_type].is_root), None)
    first = root or next(iter(types), None)
    return None if first is None else (first, 0)


def all_have_existed(job: MXJob, pods: tuple[PodView, ...]) -> bool:
    """Return whether every pod of a gang's present attempt was created once; `pods` are the existing ones."""
    last = last_created(job)
    if last is None:
        return False
    recorded = job.status.created_attempts > job.status.restarts
    return recorded or any((pod.type, pod.index) == last for pod in pods)


def with_attempt_created(job: MXJob, status: MXJobStatus) -> MXJobStatus:
    """Return the status of a job with defaults once all pods of its present attempt exist or have existed."""
    if last_created(job) is None:
        return status
    return msgspec.structs.replace(status, created_attempts=status.restarts + 1)


def replicas_of(job: MXJob, observed: Observed) -> tuple[Replica, ...]:
    """Return every replica that a job with defaults asks for, in the order in which their pods are created.

    `observed` has the pods of the present attempt only.
    """
    pods = {(pod.type, pod.index): pod for pod in observed.pods}
    ran = _has_run(job, observed.pods)
    return tuple(
        Replica(replica_type, index, _state(pod, done=index in done, ran=ran), pod)
        for replica_type, spec in job.spec.mx_replica_specs.items()
        for done in (parse_indexes(job.status.completed_indexes.get(replica_type, "")),)
        for index in range(spec.replicas or 0)
        for pod in (pods.get((replica_type, index)),)
    )


def missing_pods(job: MXJob, replicas: tuple[Replica, ...], terminating: tuple[PodView, ...]) -> tuple[CreatePod, ...]:
    """Return the pods to create, the last-created one at the end; none in place of one that is terminating.

    None at all while pods of the gang's previous attempt exist.
    """
    if terminating and restart_scope(job) == "Job":
        return ()
    last = last_created(job)
    taken = {(pod.type, pod.index) for pod in terminating}
    missing = [
        (replica.type, replica.index)
        for replica in replicas
        if replica.state is ReplicaState.MISSING and (replica.type, replica.index) not in taken
    ]
    ordered = (*(each for each in missing if each != last), *(each for each in missing if each == last))
    return tuple(CreatePod(*each, job.status.restarts, is_last=each == last) for each in ordered)


def of_types(replicas: Iterable[Replica], *types: str) -> tuple[Replica, ...]:
    """Return the replicas of the given types."""
    return tuple(replica for replica in replicas if replica.type in types)


def replicas_whose(replicas: Iterable[Replica], holds: Callable[[ReplicaType], bool]) -> tuple[Replica, ...]:
    """Return the replicas whose type satisfies a predicate."""
    return tuple(replica for replica in replicas if holds(TYPES[replica.type]))


def labels(replicas: Sequence[Replica]) -> str:
    """Return the names of the first replicas, and how many more there are: `worker-0, worker-1 and 3 more`."""
    return first_names([replica.label for replica in replicas], NAMED)


def is_tuning(replicas: Iterable[Replica]) -> bool:
    """Return whether the job tunes (MXTune): it has a Tuner, whose success ends it."""
    return bool(replicas_whose(replicas, lambda each: each.works and each.tunes))


def parse_indexes(text: str) -> frozenset[int]:
    """Return the indexes that a text in a Job's notation lists. Raises ValueError for another text."""
    indexes: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return frozenset(indexes)


def format_indexes(indexes: Iterable[int]) -> str:
    """Return the text for a set of indexes in a Job's notation: `0-2,5`."""
    runs = groupby(enumerate(sorted(set(indexes))), key=lambda pair: pair[1] - pair[0])
    spans = ([index for _, index in run] for _, run in runs)
    return ",".join(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)


def _has_run(job: MXJob, pods: tuple[PodView, ...]) -> bool:
    """Return whether a gang has run, seen or not: all of it have existed, and one has ended or one left has started.

    In which order another operator created its gang is unknown: there one that has ended says so alone.
    """
    if conditions.is_true(job.status.conditions, conditions.RUNNING):
        return True
    one_has_ended = bool(job.status.completed_indexes) or any(pod.exit_code is not None for pod in pods)
    if last_created(job) is None:
        return one_has_ended and restart_scope(job) == "Job"
    return (one_has_ended or any(pod.phase in _HAVE_RUN for pod in pods)) and all_have_existed(job, pods)


def _state(pod: PodView | None, *, done: bool, ran: bool) -> ReplicaState:
    if done:
        return ReplicaState.DONE
    if pod is None:
        return ReplicaState.LOST if ran else ReplicaState.MISSING
    ended = outcome_from(
        phase=pod.phase,
        pod_reason=pod.pod_reason,
        exit_code=pod.exit_code,
        reason=pod.reason,
        deleting=pod.deleting,
        stop_requested=pod.stop_requested,
    )
    if pod.deleting or (pod.was_removed and ended != "unfinished"):
        return ReplicaState.LOST
    if pod.end_is_unknown and pod.pod_reason != EVICTED:
        return ReplicaState.LOST
    if ended in ("failed", "stopped"):
        return ReplicaState.FAILED
    if ended == "succeeded":
        return ReplicaState.DONE
    return ReplicaState.RUNNING if pod.phase in _HAVE_RUN else ReplicaState.WAITING
