"""What a job waits for, or what is wrong with it while it goes on: read from its conditions, for every client alike."""

from collections.abc import Mapping
from typing import Any, Final

from mxnet_operator.api import conditions, names

WAITING: Final = {
    conditions.SUSPENDED: "True",
    conditions.RESTARTING: "True",
    conditions.PODS_SCHEDULED: "False",
    conditions.PODS_STARTED: "False",
    conditions.REPLICA_FAILURE: "True",
    conditions.PODS_TERMINATING: "True",
    conditions.REPLICAS_CHANGE_IGNORED: "True",
    conditions.RECONCILE_ERROR: "True",
    conditions.SERVERS_EXITED: "True",
    conditions.SCHEDULER_LEFT: "True",
    conditions.EXIT_CODE_UNKNOWN: "True",
}
"""The conditions that tell of a wait or of trouble, each with the status in which it does."""
STATES: Final = frozenset({conditions.CREATED, conditions.RUNNING, conditions.SUCCEEDED, conditions.FAILED})
"""Those that only say how far the job has come."""


def waiting_reasons(job: Mapping[str, Any]) -> tuple[str, ...]:
    """One line each, as the controller says it; none for a job that is over, whose last message says all.

    A suspended job waits for nothing but its queue, or its user.
    """
    state = conditions.job_state(job)
    if state in conditions.TERMINAL:
        return ()
    found = [c for c in (job.get("status") or {}).get("conditions") or () if _waits(c)]
    if state == conditions.SUSPENDED:
        return tuple(f"{_line(c)}{_by_whom(job)}" for c in found if c.get("type") == conditions.SUSPENDED)
    return tuple(dict.fromkeys(_line(condition) for condition in found))


def _waits(condition: Mapping[str, Any]) -> bool:
    status = condition.get("status")
    return status is not None and WAITING.get(condition.get("type", "")) == status


def _line(condition: Mapping[str, Any]) -> str:
    """The first line of its message; a failure's goes on with the end of a log."""
    message = str(condition.get("message") or condition.get("reason") or condition.get("type") or "")
    return next((line.strip().removesuffix(":") for line in message.splitlines() if line.strip()), "")


def _by_whom(job: Mapping[str, Any]) -> str:
    queue = (job["metadata"].get("labels") or {}).get(names.QUEUE_LABEL)
    return f" It waits in the queue {queue}." if queue else " Its spec.runPolicy.suspend is true."
