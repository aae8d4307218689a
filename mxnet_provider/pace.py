"""Pace at which a task reads its job: pure, the same for workers, triggers and sensors."""

import random
from collections.abc import Mapping
from typing import Any, Final

from mxnet_operator.api.conditions import RUNNING, job_state
from mxnet_operator.readers.waiting import waiting_reasons

_JITTER: Final = 0.2
_SOON: Final = 4.0
"""With the jitter, and the time that a poll takes, within five seconds."""


def until_next_poll(job: Mapping[str, Any] | None, poll_interval: float) -> float:
    """Seconds until the next poll: sooner than `poll_interval` where a user may wonder what the job waits for.

    Args:
        job: The job as it was just read; None where there is none.
        poll_interval: Seconds between two polls of a job that just runs, give or take a fifth.
    """
    calm = job is None or (job_state(job) == RUNNING and not waiting_reasons(job))
    return with_jitter(poll_interval if calm else min(poll_interval, _SOON))


def with_jitter(seconds: float) -> float:
    """Give or take a fifth, so that many tasks that began at once spread out."""
    return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - no secret depends on it
