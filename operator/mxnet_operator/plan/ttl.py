"""ttlSecondsAfterFinished: when a finished job is deleted."""

from datetime import datetime, timedelta

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJob
from mxnet_operator.readers.durations import after


def time_to_live(job: MXJob, now: datetime) -> timedelta | None:
    """Return how long a finished job is kept from now; zero or less once it is due for deletion, None if kept for good.

    Counted from completionTime or, for a job that training-operator 1.8.1 left Failed without one, from the terminal
    condition.
    """
    ttl = job.spec.run_policy.ttl_seconds_after_finished
    ended = job.status.completion_time or _terminal_at(job)
    if ttl is None or ended is None:
        return None
    return after(ended, ttl) - now


def _terminal_at(job: MXJob) -> datetime | None:
    return next(
        (c.last_transition_time for c in job.status.conditions if c.type in conditions.TERMINAL and c.status == "True"),
        None,
    )
