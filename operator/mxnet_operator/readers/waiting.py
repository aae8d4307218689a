"""Reasons why a job waits, or what is wrong with it while it runs, read from its conditions for every client."""

from collections.abc import Mapping
from typing import Any, Final

from mxnet_operator.api import conditions

WAITING: Final = {
    conditions.SUSPENDED: "True",
    conditions.ADMITTED: "False",
    conditions.RESTARTING: "True",
    conditions.PODS_SCHEDULED: "False",
    conditions.PODS_STARTED: "False",
    conditions.REPLICA_FAILURE: "True",
    conditions.PODS_TERMINATING: "True",
    conditions.REPLICAS_CHANGE_IGNORED: "True",
    conditions.FEWER_WORKERS: "True",
    conditions.RECONCILE_ERROR: "True",
    conditions.SERVERS_EXITED: "True",
    conditions.STALLED: "True",
    conditions.SCHEDULER_STILL_RUNNING: "True",
    conditions.EXIT_CODE_UNKNOWN: "True",
}
"""Conditions that report a wait or trouble, each with the status in which it does."""
STATES: Final = frozenset({conditions.CREATED, conditions.RUNNING, conditions.SUCCEEDED, conditions.FAILED})
"""Conditions that only report progress."""


def waiting_reasons(job: Mapping[str, Any]) -> tuple[str, ...]:
    """Return one line per reason, as the controller states it; none for a finished job, whose last message says all.

    A suspended job waits only for its queue, in Kueue's words, or its user.
    """
    state = conditions.job_state(job)
    if state in conditions.TERMINAL:
        return ()
    conditions_now = (job.get("status") or {}).get("conditions") or ()
    found = [c for c in conditions_now if c.get("status") and WAITING.get(c.get("type", "")) == c["status"]]
    if state == conditions.SUSPENDED:
        return _of_suspended(job, found)
    return tuple(dict.fromkeys(_line(condition) for condition in found))


def _line(condition: Mapping[str, Any]) -> str:
    message = str(condition.get("message") or condition.get("reason") or condition.get("type") or "")
    return conditions.in_a_line(message).removesuffix(":")


def _of_suspended(job: Mapping[str, Any], found: list[Mapping[str, Any]]) -> tuple[str, ...]:
    by_type = {condition.get("type"): _line(condition) for condition in found}
    said, queue = by_type.get(conditions.SUSPENDED, ""), by_type.get(conditions.ADMITTED)
    if ((job.get("spec") or {}).get("runPolicy") or {}).get("suspend"):
        return (f"{said} Its spec.runPolicy.suspend is true.".strip(),)
    queued = queue or said  # Suspended says no more than which queue that is.
    return (queued,) if queued else ()
