"""Conditions of an MXJob, in training-operator 1.8.1's words, and the one word that sums them up."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.status_size import says, shortened
from mxnet_operator.api.types import Condition, MXJobStatus

CREATED: Final = "Created"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
PODS_SCHEDULED: Final = "PodsScheduled"
"""False while the scheduler finds no node for some pods (ours); absent if it always found one."""
PODS_STARTED: Final = "PodsStarted"
"""False while containers of some pods can't start (ours): no image, say; absent if none ever failed to."""
REPLICA_FAILURE: Final = "ReplicaFailure"
"""True while the API server refuses a pod or Service of the job, with its own message; a Deployment's word for it."""
PODS_TERMINATING: Final = "PodsTerminating"
"""True while pods of an earlier attempt are there past their time (ours), and none can take their place."""
REPLICAS_CHANGE_IGNORED: Final = "ReplicasChangeIgnored"
"""True while the spec asks for other numbers of replicas than the running job was started with (ours)."""
RECONCILE_ERROR: Final = "ReconcileError"
"""True while reconciling the job fails (ours), with what failed; Crossplane's word for it."""
SERVERS_EXITED: Final = "ServersExited"
"""True while Workers (the Tuner) run whose scheduler or servers exited before there was anything to serve (ours)."""
SCHEDULER_LEFT: Final = "SchedulerLeft"
"""True once all Workers are done and the Scheduler goes on (ours): it has a grace period, then the job succeeds."""
EXIT_CODE_UNKNOWN: Final = "ExitCodeUnknown"
"""True while a pod has ended and tells of no container (ours), as those of virtual kubelets: its phase decides."""
TERMINAL: Final = frozenset({SUCCEEDED, FAILED})

REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_NO_SCHEDULER: Final = "NoScheduler"
REASON_EXITED_EARLY: Final = "ExitedEarly"
REASON_NO_KVSTORE: Final = "NoDistributedKVStore"
REASON_NO_CONTAINER_STATUS: Final = "NoContainerStatus"
REASON_FAILED_CREATE: Final = "FailedCreate"
REASON_CREATED: Final = "PodsCreated"
REASON_GRACE_EXCEEDED: Final = "GracePeriodExceeded"
REASON_TERMINATED: Final = "PodsTerminated"
REASON_NOT_SUSPENDED: Final = "NotSuspended"
REASON_AS_STARTED: Final = "AsStarted"
REASON_RESUMED: Final = "MXJobResumed"
REASON_RECONCILED: Final = "ReconcileSuccess"
REASON_FAILED_VALIDATION: Final = "MXJobFailedValidation"

_BY_PRECEDENCE: Final = (FAILED, SUCCEEDED, SUSPENDED, RESTARTING, RUNNING, CREATED)
_DISPLACES: Final = {RUNNING: RESTARTING, RESTARTING: RUNNING}

State = Literal["", "Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"]


def reason(condition_type: str) -> str:
    """The reason that 1.8.1 gives with a condition: `MXJobRunning` for Running."""
    return f"{names.KIND}{condition_type}"


def is_true(conditions: tuple[Condition, ...], condition_type: str) -> bool:
    """Whether the condition is there and holds."""
    return any(c.type == condition_type and c.status == "True" for c in conditions)


def set_condition(
    conditions: tuple[Condition, ...],
    condition_type: str,
    why: str,
    message: str,
    now: datetime,
    *,
    status: Literal["True", "False"] = "True",
) -> tuple[Condition, ...]:
    """The conditions with one of them set: unchanged where it says so already, else with it as the last.

    A message is shortened to what a status has room for. Running and Restarting displace each other, and a terminal
    condition makes both false, as in 1.8.1.
    """
    old = next((c for c in conditions if c.type == condition_type), None)
    if old is not None and (old.status, old.reason) == (status, why) and says(old.message, message):
        return conditions
    new = Condition(
        type=condition_type,
        status=status,
        reason=why,
        message=shortened(message),
        last_update_time=now,
        last_transition_time=old.last_transition_time if old is not None and old.status == status else now,
    )
    displaced = _DISPLACES.get(condition_type) if status == "True" else None
    kept = (c for c in conditions if c.type not in (condition_type, displaced))
    if condition_type in TERMINAL:
        kept = (_made_false(c, now) if c.type in (RUNNING, RESTARTING) else c for c in kept)
    return (*kept, new)


def set_false(
    conditions: tuple[Condition, ...], condition_type: str, why: str, message: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions with one of them made false, where it is true; unchanged otherwise."""
    if not is_true(conditions, condition_type):
        return conditions
    return set_condition(conditions, condition_type, why, message, now, status="False")


def with_lasting_transitions(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The conditions that one write puts in place of others: what is as it was has not flipped in between."""
    old = {(c.type, c.status): c.last_transition_time for c in before}
    return tuple(
        c if (since := old.get((c.type, c.status))) is None else msgspec.structs.replace(c, last_transition_time=since)
        for c in after
    )


def created(conditions: tuple[Condition, ...], name: str, now: datetime) -> tuple[Condition, ...]:
    """The conditions with Created, which every job has from its first status on."""
    return set_condition(conditions, CREATED, reason(CREATED), f"{names.KIND} {name} is created.", now)


def state_of(conditions: tuple[Condition, ...]) -> State:
    """The conditions in one word; empty before the first of them."""
    for condition_type in _BY_PRECEDENCE:
        if is_true(conditions, condition_type):
            return condition_type
    return ""


def is_terminal(status: MXJobStatus) -> bool:
    """Whether the job is over: nothing is created any more and no condition changes."""
    return state_of(status.conditions) in TERMINAL


def job_state(job: Mapping[str, Any]) -> str:
    """The state of a job as the API server returned it; empty before its first status.

    Read from the conditions where `status.state` is missing (a job that training-operator 1.8.1 wrote).
    """
    status = job.get("status") or {}
    state: str = status.get("state") or ""
    if state:
        return state
    true = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"}
    return next((condition_type for condition_type in _BY_PRECEDENCE if condition_type in true), "")


def terminal_message(job: Mapping[str, Any]) -> str:
    """What the terminal condition of a job says; empty while the job is not over."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") in TERMINAL and condition.get("status") == "True":
            message: str = condition.get("message") or ""
            return message
    return ""


def _made_false(condition: Condition, now: datetime) -> Condition:
    if condition.status == "False":
        return condition
    return msgspec.structs.replace(condition, status="False", last_update_time=now, last_transition_time=now)
