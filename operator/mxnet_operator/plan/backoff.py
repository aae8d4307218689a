"""Restart back-off: 10 s, doubled with each restart up to 10 minutes, as Kubernetes' Job does."""

import zlib
from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.policy import DEFAULT, Policy
from mxnet_operator.readers.durations import after

CLOCK_SKEW: Final = timedelta(minutes=1)
"""Largest clock skew between two controllers that is expected without a clock having been set."""
JITTER: Final = 0.1
"""Part of the back-off that is spread by job, so that jobs which failed together restart apart."""


def next_attempt(job: MXJob, now: datetime, policy: Policy = DEFAULT) -> datetime | None:
    """Return when the pods of the next attempt may be created; None where no back-off applies.

    It goes by the failures that count, and in a job without any by the disruptions since it was started or resumed.
    No back-off applies to a resumed job, to the first of those disruptions, and where the last attempt ended in the
    future: a clock was set back since, and how long ago that was is unknown.
    """
    status = job.status
    since = next(
        (c.last_update_time for c in status.conditions if c.type == conditions.RESTARTING and c.status == "True"), None
    )
    disruptions = status.restarts - status.first_attempt
    doublings = (status.restarts_count_towards_max or disruptions - 1) - 1
    if since is None or doublings < 0 or since > now + CLOCK_SKEW:
        return None
    wait = min(policy.first_backoff * (1 << min(doublings, 10)), policy.longest_backoff)
    return after(since, wait.total_seconds() * (1 + JITTER * _fraction(job)))


def _fraction(job: MXJob) -> float:
    """Return a number in [0, 1) that depends on the job and the attempt only."""
    number: int = zlib.crc32(f"{job.metadata.uid}/{job.status.restarts}".encode())
    return number / 2**32
