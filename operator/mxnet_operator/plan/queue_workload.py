"""A job's place in a queue of Kueue: its Workload as observed, and the changes of its conditions.

The conditions and their words are those of Kueue's own integrations, which its queues go by.
"""

from datetime import datetime
from typing import Final, Literal

import msgspec

from mxnet_operator.plan.actions import SetQueueConditions
from mxnet_operator.plan.observed import ChildView
from mxnet_operator.readers.kueue import (
    ADMITTED,
    EVICTED,
    FINISHED,
    PODS_READY,
    QUOTA_RESERVED,
    REQUEUED,
    AdmissionCheck,
    Assignment,
    WorkloadCondition,
)

_REQUEUED_AT_ONCE: Final = frozenset({"Preempted", "NodeFailures"})
"""Why a Workload is evicted that Kueue may admit again at once; after anything else it says when itself."""
_DEACTIVATED: Final = "Deactivated"
_WAITS_FOR_START: Final = WorkloadCondition(PODS_READY, "False", "WaitForStart", "Not all pods are ready or succeeded")
_RECOVERING: Final = frozenset({"WaitForRecovery", "Recovered"})


class QueueSystem(msgspec.Struct, frozen=True, gc=False):
    """Whether the API server serves Kueue's Workloads, and this controller knows them.

    Unknown before it has said so, and while they can't be listed: `trouble` says why, empty in the first moments.
    """

    state: Literal["Unknown", "Absent", "Served"] = "Absent"
    trouble: str = ""


class QueueWorkload(ChildView, frozen=True, kw_only=True, gc=False):
    """A Workload of Kueue's that a job owns."""

    resource_version: str = ""
    asks_for: str = ""
    """The digest of what it asks for."""
    active: bool = True
    cluster_queue: str = ""
    assignments: tuple[Assignment, ...] = ()
    checks: tuple[AdmissionCheck, ...] = ()
    conditions: tuple[WorkloadCondition, ...] = ()

    def condition(self, condition_type: str) -> WorkloadCondition | None:
        """Return the condition of this type; None where there is none."""
        return next((each for each in self.conditions if each.type == condition_type), None)

    def is_true(self, condition_type: str) -> bool:
        """Whether the condition is there and holds."""
        found = self.condition(condition_type)
        return found is not None and found.status == "True"

    @property
    def has_quota(self) -> bool:
        """Whether quota is reserved for it."""
        return self.is_true(QUOTA_RESERVED)

    @property
    def is_evicted(self) -> bool:
        """Whether Kueue wants its quota back."""
        return self.is_true(EVICTED)

    @property
    def is_admitted(self) -> bool:
        """Whether the job may run."""
        return self.is_true(ADMITTED) and not self.is_evicted and not self.is_true(FINISHED) and not self.deleting


def quota_returned(workload: QueueWorkload, now: datetime) -> SetQueueConditions:
    """Give back the quota of an evicted Workload, whose job has no pods any more."""
    evicted = workload.condition(EVICTED)
    why, message = (evicted.reason, evicted.message) if evicted is not None else ("Pending", "")
    requeued = "True" if why in _REQUEUED_AT_ONCE else "False"
    if why.startswith(_DEACTIVATED):  # Kueue queues one again that is active by then only if its reason is just that.
        why = _DEACTIVATED
    changes = [
        WorkloadCondition(QUOTA_RESERVED, "False", "Pending", message),
        WorkloadCondition(ADMITTED, "False", "NoReservation", "The workload has no reservation"),
        WorkloadCondition(REQUEUED, requeued, why, message),
    ]
    if workload.condition(PODS_READY) is not None:
        # One that waits for recovery would be evicted as soon as it is admitted again: Kueue counts from this condition
        # then, and else from the admission.
        changes.append(_WAITS_FOR_START)
    return _written(workload, changes, now, gives_quota_back=True)


def finished(workload: QueueWorkload, *, succeeded: bool, message: str, now: datetime) -> SetQueueConditions:
    """Give back the quota of a job that is over."""
    reason = "Succeeded" if succeeded else "Failed"
    return _written(workload, [WorkloadCondition(FINISHED, "True", reason, message)], now)


def pods_ready(workload: QueueWorkload, now: datetime, *, ready: bool) -> SetQueueConditions | None:
    """Say whether all pods of an admitted job run; None where the Workload says so already.

    Kueue evicts a job that doesn't get there in time, where its administrator has set waitForPodsReady.
    """
    old = workload.condition(PODS_READY)
    if old is not None and (old.status == "True") == ready:
        return None
    if ready:
        reason = "Recovered" if old is not None and old.reason in _RECOVERING else "Started"
        new = WorkloadCondition(PODS_READY, "True", reason, "All pods reached readiness and the workload is running")
    elif old is None:
        new = _WAITS_FOR_START
    else:
        new = WorkloadCondition(
            PODS_READY, "False", "WaitForRecovery", "At least one pod has failed, waiting for recovery"
        )
    return _written(workload, [new], now)


def _written(
    workload: QueueWorkload, changes: list[WorkloadCondition], now: datetime, *, gives_quota_back: bool = False
) -> SetQueueConditions:
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    found = {each.type: each for each in workload.conditions}
    for change in changes:
        old = found.get(change.type)
        flipped = old is None or old.status != change.status
        at = since if flipped or old is None else old.last_transition_time
        found[change.type] = msgspec.structs.replace(
            change,
            message=change.message[:_LONGEST],
            last_transition_time=at,
            observed_generation=old.observed_generation if old is not None else msgspec.UNSET,
        )
    return SetQueueConditions(
        workload.name, workload.uid, workload.resource_version, tuple(found.values()), gives_quota_back
    )


_LONGEST: Final = 32 * 1024
"""Characters of a condition's message that the API takes (metav1.Condition)."""
