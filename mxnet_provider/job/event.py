"""Event with which the wait for a job ends: decided from the job as it was read, and sent by a trigger to its task."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from mxnet_operator.api.conditions import (
    CREATED,
    FAILED,
    SCHEDULER_STILL_RUNNING,
    SUCCEEDED,
    SUSPENDED,
    job_state,
    terminal_message,
)
from mxnet_operator.api.job_url import job_page
from mxnet_operator.api.storable import storable
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.readers.waiting import waiting_reasons
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.job import replicas
from mxnet_provider.job.metrics import History
from mxnet_provider.job.summary import summary

VERSION: Final = 1

Status = Literal["succeeded", "failed", "deleted", "timeout", "startup_timeout", "error", "refused"]
"""`error`: the API server did not answer for too long; `refused`: it answered that this account may not read it."""

_GRACE_SECONDS: Final = 120.0
"""How long after its deadline a job is waited for whose success is known: the controller's grace is a minute."""
_NOT_STARTED: Final = frozenset({"", CREATED})


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """Struct that a trigger sends its task through Airflow's database."""

    def payload(self) -> dict[str, Any]:
        """Return it as Airflow stores it: only what its database takes."""
        payload: dict[str, Any] = storable(msgspec.to_builtins(self))
        return payload


class Completion(Stored, frozen=True):
    """Reason why the waiting is over."""

    status: Status
    message: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the job itself has ended, with replicas and a result to read."""
        return self.status in ("succeeded", "failed")


class Event(Completion, frozen=True, kw_only=True):
    """Completion with what is worth keeping once the job and its pods are gone.

    Fields that a later release adds have defaults, so that it reads the events of this one.
    """

    name: str
    namespace: str
    uid: str
    v: int = VERSION
    failed_replicas: list[dict[str, Any]] = msgspec.field(default_factory=list)
    logs_shown: list[str] = msgspec.field(default_factory=list)
    """The replicas whose whole log is in the task's log."""
    log_cursors: dict[str, list[Any]] = msgspec.field(default_factory=dict)
    """Where the reading of each replica's log has got to."""
    summary: dict[str, Any] | None = None
    """What the task returns; None where the job isn't over."""
    metrics: History = msgspec.field(default_factory=dict)
    page: str = ""
    """Address of the job's page, as the job's status says where it is over."""

    @classmethod
    def of(
        cls,
        found: Completion,
        ref: JobRef,
        job: Mapping[str, Any] | None,
        pods: Iterable[replicas.Pod],
        *,
        result_of: str | None,
        **seen: Any,
    ) -> "Event":
        """Return the event of a completion, with what the job and its pods say where the job is over.

        `result_of` is the replica whose termination message is the result; `seen` are fields of the waiting itself.
        """
        pods = list(pods)
        over = job if found.is_over else None
        return cls(
            **msgspec.structs.asdict(found),
            name=ref.name,
            namespace=ref.namespace,
            uid=ref.uid,
            failed_replicas=replicas.failures(pods),
            summary=None if over is None else summary(over, pods, result_of=result_of),
            page="" if over is None else job_page(over),
            **seen,
        )


def read(payload: Mapping[str, Any] | None) -> Event:
    """Return the event that a trigger sent; raises MXNetJobError for one that this release doesn't know."""
    if not isinstance(payload, Mapping) or payload.get("v") != VERSION:
        raise MXNetJobError(f"The trigger sent an event that this release does not know: {payload!r}")
    try:
        return msgspec.convert(payload, Event)
    except msgspec.ValidationError as e:
        raise MXNetJobError(f"The trigger sent an event that this release does not know ({e}): {payload!r}") from e


def completion_of(
    job: Mapping[str, Any] | None,
    uid: str,
    *,
    now: float,
    deadline: float | None = None,
    startup_timeout: float | None = None,
    reattached_at: float | None = None,
) -> Completion | None:
    """Return why the wait for a job, as it was just read, is over; None while it has to go on.

    The end of the job comes before every deadline: one that finished while nobody polled has finished. A deadline is
    put off, for two minutes at most, where the job's success is known, and only its Scheduler is waited for.

    Moments are in seconds since the epoch. The `startup_timeout` of a job that this try found counts from
    `reattached_at`; the time of a suspension doesn't count.
    """
    if job is None:
        return Completion("deleted", "was deleted before it had finished")
    if job["metadata"]["uid"] != uid:
        return Completion("deleted", "was deleted, and another has its name, before it had finished")
    state = job_state(job)
    if state == SUCCEEDED:
        return Completion("succeeded", terminal_message(job))
    if state == FAILED:
        return Completion("failed", terminal_message(job))
    if job["metadata"].get("deletionTimestamp"):
        return Completion("deleted", "is being deleted and had not finished")
    if deadline is not None and now >= deadline + (_GRACE_SECONDS if success_is_known(job) else 0.0):
        return Completion("timeout", "took longer than the task's execution_timeout")
    if startup_timeout is not None and state in _NOT_STARTED:
        waited = now - max(waiting_since(job), reattached_at or 0.0)
        if waited >= startup_timeout:
            why = "".join(f": {reason}" for reason in waiting_reasons(job))
            return Completion("startup_timeout", f"had not started after {waited:.0f} s{why}")
    return None


def success_is_known(job: Mapping[str, Any]) -> bool:
    """Whether all Workers have succeeded, so that the job succeeds once its Scheduler has ended or is stopped."""
    left = any(c.get("type") == SCHEDULER_STILL_RUNNING and c.get("status") == "True" for c in _conditions(job))
    return left and (job.get("spec") or {}).get("successPolicy") != "Scheduler"


def waiting_since(job: Mapping[str, Any]) -> float:
    """Return when the job began to wait for its pods: its creation, or the end of its suspension if that came later."""
    moments = [job["metadata"].get("creationTimestamp")]
    moments += [c.get("lastTransitionTime") for c in _conditions(job) if c.get("type") == SUSPENDED]
    return max((datetime.fromisoformat(moment).timestamp() for moment in moments if moment), default=0.0)


def _conditions(job: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return (job.get("status") or {}).get("conditions") or []
