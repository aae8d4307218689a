"""Conditions of changes that a running job can't follow: True until it was suspended, or the change is taken back."""

from datetime import datetime
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition
from mxnet_operator.plan.actions import Event

IGNORED: Final = (conditions.REPLICAS_CHANGE_IGNORED, conditions.PRIORITY_CLASS_IGNORED)
"""Types of these conditions."""


def ignored(current: tuple[Condition, ...], ignored_type: str, message: str, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions with one of `IGNORED` True: the message says what was changed, and how it takes effect."""
    return conditions.set_condition(current, ignored_type, conditions.REASON_NOT_SUSPENDED, message, now)


def followed(current: tuple[Condition, ...], ignored_type: str, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions with one of `IGNORED` False, if it was True: the job runs as its spec says."""
    return conditions.set_false(current, ignored_type, conditions.REASON_AS_STARTED, "The job runs as specified.", now)


def all_followed(current: tuple[Condition, ...], now: datetime) -> tuple[Condition, ...]:
    """Return the conditions of a job that is about to begin as its spec says: none of `IGNORED` is True."""
    for ignored_type in IGNORED:
        current = followed(current, ignored_type, now)
    return current


def ignored_events(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> tuple[Event, ...]:
    """Return a warning for each of `IGNORED` that became True, or is True of another change."""
    return tuple(
        Event("Warning", condition.type, condition.message)
        for condition in after
        if condition.type in IGNORED and condition.status == "True" and condition not in before
    )
