"""Conditions about pods that wait or probably hang, and when to requeue the job for them."""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan import early_exit, placement, scheduler_grace
from mxnet_operator.plan.actions import Event
from mxnet_operator.plan.placement import Unplaced
from mxnet_operator.plan.replicas import Replica
from mxnet_operator.plan.starting import time_until_told, with_starting
from mxnet_operator.plan.unknown_ends import with_unknown_ends

_TOLD: Final = (
    conditions.SERVERS_EXITED,
    conditions.SCHEDULER_LEFT,
    conditions.EXIT_CODE_UNKNOWN,
)
"""Conditions that are also posted as a Warning Event when they become True."""


def with_troubles(
    current: tuple[Condition, ...],
    job: MXJob,
    replicas: tuple[Replica, ...],
    now: datetime,
    unplaced: Unplaced | None = None,
) -> tuple[Condition, ...]:
    """Return the conditions, updated from the present pods of a job with defaults."""
    current = with_starting(placement.with_placement(current, job, replicas, now, unplaced), replicas, now)
    current = early_exit.with_servers_exited(current, replicas, now)
    current = scheduler_grace.with_scheduler_left(current, job, replicas, now)
    return with_unknown_ends(current, replicas, now)


def trouble_events(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> tuple[Event, ...]:
    """Return a Warning for each of these conditions that has become True."""
    return tuple(
        Event("Warning", condition.type, condition.message)
        for condition in after
        if condition.type in _TOLD and condition.status == "True" and not conditions.is_true(before, condition.type)
    )


def time_until_trouble(
    current: tuple[Condition, ...],
    job: MXJob,
    replicas: tuple[Replica, ...],
    now: datetime,
    unplaced: Unplaced | None = None,
) -> timedelta | None:
    """Return when to requeue the job though nothing changes; None where time alone changes nothing."""
    waits = (
        placement.time_until_unplaced(current, job, replicas, now, unplaced),
        time_until_told(current, replicas, now),
        early_exit.time_until_said(replicas, now),
        scheduler_grace.time_until_next(job, replicas, now),
    )
    return min((wait for wait in waits if wait is not None), default=None)
