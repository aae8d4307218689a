"""Rejections: conditions and Events of a job that is invalid, has a rejected child, or can't be reconciled.

A stored job that is no valid MXJob (it is older than the CRD's rules) has Failed once none of its pods runs: until then
its pods are left alone, and its spec may be corrected. A job whose pod or Service the API server can never accept has
Failed at once. One whose child is rejected for a reason outside of the job (a quota, a right, an admission
policy, a name that is taken) is retried, and has a condition meanwhile.
"""

import re
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.kinds import kind_of
from mxnet_operator.api.types import Condition, MXJob, MXJobStatus
from mxnet_operator.plan.actions import Effects, Event
from mxnet_operator.plan.replicas import replicas_in
from mxnet_operator.plan.status import with_end

_FINAL_CODES: Final = frozenset({400, 413, 422})
_BY_ADMISSION: Final = re.compile(r'admission webhook "|policy \S+ (with binding \S+ )?denied request', re.IGNORECASE)
"""Message of kube-apiserver for what a webhook or admission policy denied, whatever HTTP status those chose."""

INVALID_CHECK_INTERVAL: Final = timedelta(seconds=30)
"""Interval at which an invalid job whose pods run is reconciled: of pods without labels no watch event arrives."""

_NONE_RUNS: Final = "No pod of the job runs any more, and it has failed."
_LET_BE: Final = (
    "Its pods are left alone and nothing is created for it until it is corrected (kubectl edit); it fails once none of"
    " its pods runs"
)


class RejectedCreation(msgspec.Struct, frozen=True, kw_only=True):
    """Creation that the API server answered with an error, or that collides with an object of another owner."""

    kind: str
    name: str
    code: int = 0
    """HTTP status; 0 where the name is taken by an object that isn't the job's."""
    reason: str = ""
    """Reason of the API server's Status; empty where something else answered for it, such as a proxy."""
    message: str

    @property
    def is_final(self) -> bool:
        """Whether the same object can never be created: the fault is in the object, not in quotas or policies."""
        return self.code in _FINAL_CODES and bool(self.reason) and not is_by_admission(self.message)

    @property
    def event(self) -> Event:
        """Event about the rejection while the creation is tried again."""
        text = f"Error creating: {self.message}" if self.code else self.message
        return Event("Warning", f"FailedCreate{self.kind}", text)


def is_by_admission(message: str) -> bool:
    """Return whether a webhook or an admission policy denied it, which depends on more than the object."""
    return bool(_BY_ADMISSION.search(message))


def reject(
    name: str,
    status: MXJobStatus,
    errors: tuple[str, ...],
    now: datetime,
    *,
    has_running_pods: bool = False,
    is_deleting: bool = False,
) -> Effects:
    """Return the plan for an invalid job: ReconcileError while pods of it run, then Failed.

    Nothing is done for one that is finished or is being deleted.

    No pod is touched: `docs/decisions/api.md`.
    """
    if is_deleting or conditions.is_terminal(status):
        return Effects()
    now = now.replace(microsecond=0)
    message = f"{names.KIND} {name} is not valid: {'; '.join(errors)}"
    if not has_running_pods:
        reported = conditions.set_false(
            status.conditions, conditions.RECONCILE_ERROR, conditions.REASON_FAILED_VALIDATION, _NONE_RUNS, now
        )
        status = msgspec.structs.replace(status, conditions=reported)
        failed = with_end(status, conditions.FAILED, message, now, reason=conditions.REASON_FAILED_VALIDATION)
        return Effects(status=failed, events=(Event("Warning", conditions.REASON_FAILED_VALIDATION, message),))
    message = f"{message}. {_LET_BE}"
    current = reconcile_failed(name, status.conditions, conditions.REASON_FAILED_VALIDATION, message, now)
    if current == status.conditions:
        return Effects(requeue_after=INVALID_CHECK_INTERVAL)
    return Effects(
        status=msgspec.structs.replace(status, conditions=current, state=conditions.state_of(current)),
        events=(Event("Warning", conditions.RECONCILE_ERROR, message),),
        requeue_after=INVALID_CHECK_INTERVAL,
    )


def creation_rejected(job: MXJob, decided: Effects, rejected: RejectedCreation, now: datetime) -> Effects:
    """Return the plan for a job whose child was rejected: Failed where it can never be created."""
    now = now.replace(microsecond=0)
    status = decided.status or job.status
    if conditions.is_terminal(status):
        return decided
    if rejected.is_final:
        why = f"the API server rejects its {rejected.kind} {rejected.name}: {rejected.message}"
        message = f"mxjob {job.metadata.name} is failed because {why}"
        failed = with_end(status, conditions.FAILED, message, now, replicas=replicas_in(job))
        event = Event("Warning", conditions.reason(conditions.FAILED), message)
        return Effects(status=failed, events=(*decided.events, event))
    current = conditions.set_condition(
        status.conditions, conditions.REPLICA_FAILURE, conditions.REASON_FAILED_CREATE, rejected.event.message, now
    )
    if current == job.status.conditions:
        return decided
    status = msgspec.structs.replace(status, conditions=current, state=conditions.state_of(current))
    return msgspec.structs.replace(decided, status=status)


def reconcile_failed(
    name: str, current: tuple[Condition, ...], why: str, message: str, now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions of a job that fails to reconcile: ReconcileError, and Created if it had none."""
    current = current or conditions.created(current, name, now)
    return conditions.set_condition(current, conditions.RECONCILE_ERROR, why, message, now)


def reconciled(current: tuple[Condition, ...], now: datetime) -> tuple[Condition, ...]:
    """Return the conditions of a job that the controller has reconciled: ReconcileError False, where it was True."""
    return conditions.set_false(
        current, conditions.RECONCILE_ERROR, conditions.REASON_RECONCILED, "The job is reconciled again.", now
    )


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Existing object that has the name."""

    owner_api_version: str = ""
    owner_kind: str = ""
    """Controller reference of the object; empty without one, as all fields of the owner."""
    owner_name: str = ""
    owner_uid: str = ""
    attempt: str = "0"
    deleting: bool = False
    is_watched: bool = True
    """Whether it has the label by which the controller watches: an older operator's child has not."""


class Holder(Enum):
    """Kind of owner that has the name."""

    THE_JOB = "the job"
    """The object is the one that was to be created."""
    LEFT_OVER = "left over"
    """The object will be gone soon: it is terminating, of another attempt, or of a deleted job of the same name."""
    ANOTHER = "another"
    """The object belongs to another owner, about which the user must decide."""


def holder_of_name(job: MXJob, attempt: str, found: Found) -> Holder:
    """Return who owns the name of a child that was to be created for this attempt.

    A name proves nothing: the owner's uid and the attempt must match, and the object must not be terminating.
    """
    is_ours = found.owner_uid == job.metadata.uid
    if is_ours and attempt == found.attempt and not found.deleting:
        return Holder.THE_JOB
    owner, own = kind_of(found.owner_api_version, found.owner_kind), kind_of(job.api_version, job.kind)
    is_left_over = (owner, found.owner_name) == (own, job.metadata.name)
    return Holder.LEFT_OVER if is_ours or found.deleting or is_left_over else Holder.ANOTHER
