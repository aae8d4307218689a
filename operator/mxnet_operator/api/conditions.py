"""Conditions of an MXJob, in training-operator 1.8.1's words, and the one-word state derived from them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.status_size import is_same_message, shortened
from mxnet_operator.api.types import Condition, MXJobStatus

CREATED: Final = "Created"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
PODS_SCHEDULED: Final = "PodsScheduled"
"""Condition (ours): False while the scheduler finds no node for some pods; absent if it always found one."""
PODS_STARTED: Final = "PodsStarted"
"""Condition (ours): False while containers of some pods can't start (no image, say); absent if all could."""
REPLICA_FAILURE: Final = "ReplicaFailure"
"""Condition: True while the API server rejects a pod or Service of the job, with its message; as on a Deployment."""
PODS_TERMINATING: Final = "PodsTerminating"
"""Condition (ours): True while pods of an earlier attempt outstay their deletion, so that none can take their place."""
REPLICAS_CHANGE_IGNORED: Final = "ReplicasChangeIgnored"
"""Condition (ours): True while the spec asks for other counts of replicas than the running job was started with."""
RECONCILE_ERROR: Final = "ReconcileError"
"""Condition (ours): True while reconciling the job fails, with the error; as on Crossplane's resources."""
SERVERS_EXITED: Final = "ServersExited"
"""Condition (ours): True while Workers (the Tuner) run whose scheduler or servers exited before they could serve."""
SCHEDULER_STILL_RUNNING: Final = "SchedulerStillRunning"
"""Condition (ours): True while the Scheduler outlives all Workers; after a grace period the job succeeds."""
EXIT_CODE_UNKNOWN: Final = "ExitCodeUnknown"
"""Condition (ours): True while a pod has ended without a container status (virtual kubelets); its phase decides."""
ADMITTED: Final = "Admitted"
"""Condition (ours, named as its Workload's): whether Kueue has admitted a job of a queue; absent without a queue."""
STALLED: Final = "Stalled"
"""Condition (ours): True while the first running worker has used no CPU and written nothing for five minutes."""
FEWER_WORKERS: Final = "FewerWorkers"
"""Condition (ours): True while the job runs with fewer Workers than it was started with (minWorkers)."""
TERMINAL: Final = frozenset({SUCCEEDED, FAILED})

REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_MIN_AVAILABLE: Final = "MinAvailableTooLarge"
REASON_GROUP_PENDING: Final = "PodGroupPending"
REASON_NO_SCHEDULER: Final = "NoScheduler"
REASON_KUBELET_NOT_REPORTING: Final = "KubeletNotReporting"
REASON_EXITED_EARLY: Final = "ExitedEarly"
REASON_NO_KVSTORE: Final = "NoDistributedKVStore"
REASON_NO_CONTAINER_STATUS: Final = "NoContainerStatus"
REASON_FAILED_CREATE: Final = "FailedCreate"
REASON_NO_PROGRESS: Final = "NoProgress"
REASON_PROGRESS: Final = "Progress"
REASON_CREATED: Final = "PodsCreated"
REASON_GRACE_EXCEEDED: Final = "GracePeriodExceeded"
REASON_TERMINATED: Final = "PodsTerminated"
REASON_NOT_SUSPENDED: Final = "NotSuspended"
REASON_SPEC_IN_SYNC: Final = "SpecInSync"
REASON_RESUMED: Final = "MXJobResumed"
REASON_EARLY_STOPPED: Final = "EarlyStopped"
REASON_RECONCILED: Final = "ReconcileSuccess"
REASON_CRD_OUTDATED: Final = "CRDOutdated"
REASON_FAILED_VALIDATION: Final = "MXJobFailedValidation"

_BY_PRECEDENCE: Final = (FAILED, SUCCEEDED, SUSPENDED, RESTARTING, RUNNING, CREATED)
_DISPLACES: Final = {RUNNING: RESTARTING, RESTARTING: RUNNING}

State = Literal["", "Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"]


def reason(condition_type: str) -> str:
    """Return the reason that 1.8.1 gives with a condition: `MXJobRunning` for Running."""
    return f"{names.KIND}{condition_type}"


def is_true(conditions: tuple[Condition, ...], condition_type: str) -> bool:
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
    """Return the conditions with one of them set: unchanged where it says so already, else with it as the last.

    A message is shortened to what a status has room for. Running and Restarting displace each other, and a terminal
    condition makes both false, as in 1.8.1, and Stalled.
    """
    old = next((c for c in conditions if c.type == condition_type), None)
    if old is not None and (old.status, old.reason) == (status, why) and is_same_message(old.message, message):
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
        kept = (_made_false(c, now) if c.type in (RUNNING, RESTARTING, STALLED) else c for c in kept)
    return (*kept, new)


def set_false(
    conditions: tuple[Condition, ...], condition_type: str, why: str, message: str, now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with one of them False, where it was True; unchanged otherwise."""
    if not is_true(conditions, condition_type):
        return conditions
    return set_condition(conditions, condition_type, why, message, now, status="False")


def with_lasting_transitions(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Return the conditions of one write with the transition times of those whose status did not change in between."""
    old = {(c.type, c.status): c.last_transition_time for c in before}
    return tuple(
        c if (since := old.get((c.type, c.status))) is None else msgspec.structs.replace(c, last_transition_time=since)
        for c in after
    )


def created(conditions: tuple[Condition, ...], name: str, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions with Created, which every job has from its first status on."""
    return set_condition(conditions, CREATED, reason(CREATED), f"{names.KIND} {name} is created.", now)


def since(conditions: tuple[Condition, ...], condition_type: str) -> datetime | None:
    """Return since when a condition is True; None where it isn't."""
    true = (each for each in conditions if (each.type, each.status) == (condition_type, "True"))
    return next((each.last_transition_time for each in true), None)


def state_of(conditions: tuple[Condition, ...]) -> State:
    """Return the state that the conditions amount to, as one word; empty before the first of them."""
    for condition_type in _BY_PRECEDENCE:
        if is_true(conditions, condition_type):
            return condition_type
    return ""


def is_terminal(status: MXJobStatus) -> bool:
    """Return whether the job has finished: nothing is created any more and no condition changes."""
    return state_of(status.conditions) in TERMINAL


def job_state(job: Mapping[str, Any]) -> str:
    """Return the state of a job as the API server returned it; empty before its first status.

    Derived from the conditions where `status.state` is missing (a job that training-operator 1.8.1 wrote).
    """
    status = job.get("status") or {}
    state: str = status.get("state") or ""
    if state:
        return state
    true = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"}
    return next((condition_type for condition_type in _BY_PRECEDENCE if condition_type in true), "")


def terminal_message(job: Mapping[str, Any]) -> str:
    """Return the message of a job's terminal condition; empty while the job is unfinished."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") in TERMINAL and condition.get("status") == "True":
            message: str = condition.get("message") or ""
            return message
    return ""


def in_a_line(message: str) -> str:
    """Shorten a condition's message for a table: its first line, and after a colon the last, a traceback's error."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or [""]
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]


def _made_false(condition: Condition, now: datetime) -> Condition:
    if condition.status == "False":
        return condition
    return msgspec.structs.replace(condition, status="False", last_update_time=now, last_transition_time=now)
