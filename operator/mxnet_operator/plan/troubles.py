"""What a job says of its pods while it waits or probably hangs: one condition each, and when to look again for it."""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan import early_exit, placement, scheduler_grace
from mxnet_operator.plan.actions import Event
from mxnet_operator.plan.replicas import Replica
from mxnet_operator.plan.starting import with_starting
from mxnet_operator.plan.unknown_ends import with_unknown_ends

_TOLD: Final = (conditions.SERVERS_EXITED, conditions.SCHEDULER_LEFT, conditions.EXIT_CODE_UNKNOWN)
"""Conditions that go out as a Warning event as well, when they become true."""


def with_troubles(
    current: tuple[Condition, ...], job: MXJob, replicas: tuple[Replica, ...], now: datetime
) -> tuple[Condition, ...]:
    """The conditions with what the pods of a job with defaults tell now."""
    current = with_starting(placement.with_placement(current, replicas, now), replicas, now)
    current = early_exit.with_servers_exited(current, replicas, now)
    current = scheduler_grace.with_scheduler_left(current, job, replicas, now)
    return with_unknown_ends(current, replicas, now)


def trouble_events(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> tuple[Event, ...]:
    """A Warning for each of these conditions that has become true."""
    return tuple(
        Event("Warning", condition.type, condition.message)
        for condition in after
        if condition.type in _TOLD and condition.status == "True" and not conditions.is_true(before, condition.type)
    )


def time_until_trouble(job: MXJob, replicas: tuple[Replica, ...], now: datetime) -> timedelta | None:
    """When to look again though nothing changes; None where time alone changes nothing."""
    waits = (
        placement.time_until_unplaced(replicas, now),
        early_exit.time_until_said(replicas, now),
        scheduler_grace.time_until_next(job, replicas, now),
    )
    return min((wait for wait in waits if wait is not None), default=None)
