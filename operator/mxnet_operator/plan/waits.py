"""Waits until the next reconciliation: the soonest of several, and what is left of one whatever the clocks say."""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api.types import Condition

SAY_AGAIN: Final = timedelta(seconds=4)
"""Time for which a message stays whose details change with other jobs: the scheduler's second, right within five."""


def soonest(*waits: timedelta | None) -> timedelta | None:
    """Return the shortest of several waits; None where nothing is waited for."""
    return min((wait for wait in waits if wait is not None), default=None)


def left_of(wait: timedelta, since: datetime | None, now: datetime) -> timedelta:
    """Return what is left of a wait; zero if its beginning is unknown, or so far ahead that a clock was set."""
    if since is None:
        return timedelta(0)
    left = since + wait - now
    return left if timedelta(0) < left <= 2 * wait else timedelta(0)


def time_until_said_again(said: Condition, now: datetime, wait: timedelta = SAY_AGAIN) -> timedelta | None:
    """Return how long the message of a condition stays as it is; None where it may change now."""
    return left_of(wait, said.last_update_time, now) or None
