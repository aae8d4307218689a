"""Abandoned jobs, for which no task waits any more: pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_provider.job import holder, kill
from mxnet_provider.job.task_state import ABSENT, OVER


class Fate(msgspec.Struct, frozen=True):
    """Whether a job is to be deleted, and why or why not."""

    what: Literal["delete", "leave"]
    why: str


def is_unfinished(job: Mapping[str, Any]) -> bool:
    return job_state(job) not in TERMINAL and not job["metadata"].get("deletionTimestamp")


def try_id_of(job: Mapping[str, Any]) -> str | None:
    """Airflow's id of the try that holds the job; None where none does."""
    parts = holder.holder_of(job).split(":")
    return parts[1] if len(parts) > 1 and parts[0].isdecimal() else None


def fate(
    job: Mapping[str, Any], task_state: str | None, now: datetime, *, min_age: timedelta, include_unknown: bool = False
) -> Fate:
    """Decide about an unfinished job whose task is in this state, or ABSENT."""
    if try_id_of(job) is None:
        return Fate("leave", "no task holds it: it is detached, or an earlier release made it")
    if names.LEASE_DURATION_ANNOTATION not in (job["metadata"].get("annotations") or {}):
        return Fate("leave", "it may outlive its task: it has no lease")
    if kill.is_suspended_by_airflow(job):
        return Fate("leave", "it is suspended, as its task's on_kill_action says")
    if now - datetime.fromisoformat(job["metadata"]["creationTimestamp"]) < min_age:
        return Fate("leave", "it is too young")
    if task_state == ABSENT:
        said = "this Airflow knows no such task: its run was deleted, or it is another Airflow's"
        return Fate("delete" if include_unknown else "leave", said)
    if task_state in OVER:
        return Fate("delete", f"its task is over: {task_state}")
    return Fate("leave", f"its task is {task_state or 'about to run'}")
