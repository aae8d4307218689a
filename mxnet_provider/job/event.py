"""Event by which a trigger wakes its task: a flat dict, and the reading of it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from mxnet_operator.api.job_url import job_page
from mxnet_operator.api.storable import storable
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.job import replicas
from mxnet_provider.job.completion import Completion, Status
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.metrics import History
from mxnet_provider.job.summary import summary

VERSION: Final = 1


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """Struct that a trigger sends its task through Airflow's database."""

    def payload(self) -> dict[str, Any]:
        """Return it as Airflow stores it: only what its database takes."""
        payload: dict[str, Any] = storable(msgspec.to_builtins(self))
        return payload


class Event(Stored, frozen=True, kw_only=True):
    """Reason why the waiting is over, and what is worth keeping once the job and its pods are gone.

    Fields that a later release adds have defaults, so that it reads the events of this one.
    """

    status: Status
    name: str
    namespace: str
    uid: str
    v: int = VERSION
    reason: str = ""
    message: str = ""
    failed_replicas: list[dict[str, Any]] = msgspec.field(default_factory=list)
    logs_shown: list[str] = msgspec.field(default_factory=list)
    """The replicas whose whole log is in the task's log."""
    log_cursors: dict[str, list[Any]] = msgspec.field(default_factory=dict)
    """Where the reading of each replica's log has got to."""
    outage_s: float = 0.0
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

        Args:
            found: The completion.
            ref: The job that was waited for.
            job: It as it was read last.
            pods: Its pods; none where it is not over.
            result_of: The replica whose termination message is the result; None for none.
            seen: Other fields, of the waiting itself.
        """
        pods = list(pods)
        over = job if found.is_over else None
        return cls(
            status=found.status,
            reason=found.reason,
            message=found.message,
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
