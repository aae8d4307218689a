"""Conditions of an MXJob, in training-operator 1.8.1's words, and the one word that sums them up."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import Condition, MXJobStatus

CREATED: Final = "Created"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
TERMINAL: Final = frozenset({SUCCEEDED, FAILED})

REASON_RESUMED: Final = "MXJobResumed"
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
    conditions: tuple[Condition, ...], condition_type: str, why: str, message: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions with one of them made true: unchanged where it says so already.

    Running and Restarting displace each other, and a terminal condition makes Running false, as in 1.8.1.
    """
    old = next((c for c in conditions if c.type == condition_type), None)
    if old is not None and (old.status, old.reason, old.message) == ("True", why, message):
        return conditions
    new = Condition(
        type=condition_type,
        status="True",
        reason=why,
        message=message,
        last_update_time=now,
        last_transition_time=old.last_transition_time if old is not None and old.status == "True" else now,
    )
    kept = (c for c in conditions if c.type not in (condition_type, _DISPLACES.get(condition_type)))
    if condition_type in TERMINAL:
        kept = (_made_false(c, now) if c.type in (RUNNING, RESTARTING) else c for c in kept)
    return (*kept, new)


def set_false(
    conditions: tuple[Condition, ...], condition_type: str, why: str, message: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions with one of them made false, where it is true; unchanged otherwise."""
    if not is_true(conditions, condition_type):
        return conditions
    return tuple(
        msgspec.structs.replace(
            c, status="False", reason=why, message=message, last_update_time=now, last_transition_time=now
        )
        if c.type == condition_type
        else c
        for c in conditions
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
