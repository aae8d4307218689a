"""What a job says when it, or what it is made of, is rejected, or when the controller fails at it.

A stored job that is no valid MXJob (it is older than the CRD's rules) has Failed. So has one whose pod or Service the
API server can never accept. One whose child is refused for a reason outside of the job (a quota, a right, an admission
policy, a name that is taken) goes on trying, and says so meanwhile.
"""

import re
from datetime import datetime
from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.spans import short
from mxnet_operator.api.types import Condition, MXJob, MXJobStatus, ReplicaStatus
from mxnet_operator.plan.actions import Event, Plan
from mxnet_operator.plan.ready import ready, replicas_in

_FINAL_CODES: Final = frozenset({400, 413, 422})
_BY_ADMISSION: Final = re.compile(r'admission webhook "|policy \S+ (with binding \S+ )?denied request', re.IGNORECASE)
"""kube-apiserver's words for what a webhook or an admission policy denied, with whatever HTTP status these chose."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A creation that the API server answered with an error, or that collides with somebody else's object."""

    kind: str
    name: str
    code: int = 0
    """HTTP status; 0 where the name is taken by an object that isn't the job's."""
    reason: str = ""
    """The reason of the API server's Status; empty where something else answered for it, such as a proxy."""
    message: str

    @property
    def is_final(self) -> bool:
        """Whether the same object can never be created: a function of the object alone, unlike quotas and policies."""
        return self.code in _FINAL_CODES and bool(self.reason) and not _BY_ADMISSION.search(self.message)

    @property
    def event(self) -> Event:
        """How users read of it while the creation is tried again."""
        text = f"Error creating: {self.message}" if self.code else self.message
        return Event("Warning", f"FailedCreate{self.kind}", text)


def refuse(name: str, status: MXJobStatus, errors: tuple[str, ...], now: datetime) -> Plan:
    """The plan for a job that can't be run; nothing for one that is over already."""
    if conditions.is_terminal(status):
        return Plan()
    message = f"{names.KIND} {name} is not valid: {'; '.join(errors)}"
    failed = _ended(status, conditions.REASON_FAILED_VALIDATION, message, now)
    return Plan(status=failed, events=(Event("Warning", conditions.REASON_FAILED_VALIDATION, message),))


def creation_refused(job: MXJob, decided: Plan, refused: Refused, now: datetime) -> Plan:
    """The plan for a job with defaults after one of its children could not be created: Failed where it never can be."""
    now = now.replace(microsecond=0)
    status = decided.status or job.status
    if conditions.is_terminal(status):
        return decided
    if refused.is_final:
        why = f"the API server rejects its {refused.kind} {refused.name}: {refused.message}"
        message = f"mxjob {job.metadata.name} is failed because {why}"
        failed = _ended(status, conditions.reason(conditions.FAILED), message, now)
        done = sum(count.succeeded for count in failed.replica_statuses.values())
        failed = msgspec.structs.replace(failed, ready=ready(done, replicas_in(job)))
        event = Event("Warning", conditions.reason(conditions.FAILED), message)
        return Plan(status=failed, events=(*decided.events, event))
    current = conditions.set_condition(
        status.conditions, conditions.REPLICA_FAILURE, conditions.REASON_FAILED_CREATE, refused.event.message, now
    )
    if current == job.status.conditions:
        return decided
    told = msgspec.structs.replace(status, conditions=current, state=conditions.state_of(current))
    return msgspec.structs.replace(decided, status=told)


def reconcile_failed(
    name: str, current: tuple[Condition, ...], why: str, message: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions of a job that the controller fails to reconcile: ReconcileError, and Created where none was."""
    current = current or conditions.created(current, name, now)
    return conditions.set_condition(current, conditions.RECONCILE_ERROR, why, message, now)


def reconciled(current: tuple[Condition, ...], now: datetime) -> tuple[Condition, ...]:
    """The conditions of a job that the controller has reconciled: ReconcileError is false, where it was true."""
    return conditions.set_false(
        current, conditions.RECONCILE_ERROR, conditions.REASON_RECONCILED, "The job is reconciled again.", now
    )


def _ended(status: MXJobStatus, why: str, message: str, now: datetime) -> MXJobStatus:
    """The status of a job that has failed; what still runs is about to be stopped and counts as nothing."""
    current = conditions.set_condition(status.conditions, conditions.FAILED, why, message, now)
    counts = {
        replica_type: ReplicaStatus(succeeded=count.succeeded, failed=count.failed)
        for replica_type, count in status.replica_statuses.items()
    }
    return msgspec.structs.replace(
        status,
        state=conditions.state_of(current),
        conditions=current,
        replica_statuses=counts,
        duration=short((now - (status.start_time or now)).total_seconds()),
        completion_time=now,
    )
