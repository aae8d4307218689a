"""Lease and deadline of a job that goes on without its task, by the task's own retries and timeout. Pure."""

import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

_A_DAY: Final = 24 * 3600.0
"""Airflow's own longest delay before a retry."""
_SLACK: Final = 3600.0
_LOOKS: Final = 4
"""A renewal is due after a third of the lease, and looks are up to a fifth further apart than said."""


def lease_seconds(lease: float, poll_interval: float, delay_before_retry: float) -> int:
    """Return the seconds of a try's lease: three polls fit in, and the next try, which goes on with the job."""
    return math.ceil(max(lease, _LOOKS * poll_interval) + delay_before_retry)


def delay_before_retry(
    try_number: int,
    max_tries: int,
    delay: timedelta,
    *,
    factor: float = 0.0,
    longest: timedelta | None = None,
    instead: Iterable[timedelta] = (),
) -> float:
    """Seconds until another try begins after this one; 0 where none is left.

    `delay`, `factor` and `longest` are the task's `retry_delay`, `retry_exponential_backoff` (True for 2) and
    `max_retry_delay`; `instead` is what its `retry_policy` may choose in place of all that.
    """
    if try_number > max_tries:
        return 0.0
    seconds = delay.total_seconds()
    if factor:
        seconds *= max(2.0, float(factor)) ** min(try_number, 64)  # Airflow's jitter at most doubles a delay
    seconds = min(seconds, longest.total_seconds() if longest is not None else _A_DAY)
    return max(seconds, *(each.total_seconds() for each in instead), 0.0)


def deadline_seconds(timeout: timedelta, tries_left: int, between_tries: float) -> int:
    """Return the job's `activeDeadlineSeconds` where its manifest has none.

    Each try that goes on with the job has its whole `execution_timeout`, so all of them have to fit in: this is for a
    job that nobody looks after any more.
    """
    tries = max(tries_left, 1)
    return round(tries * timeout.total_seconds() + (tries - 1) * between_tries + _SLACK)
