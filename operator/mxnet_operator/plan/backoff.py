"""How long to wait between two attempts: 10 s, doubled with each restart up to 10 minutes, as Kubernetes' Job does."""

import zlib
from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.spans import after
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.policy import DEFAULT, Policy

CLOCK_SKEW: Final = timedelta(minutes=1)
"""How far apart the clocks of two controllers may be without anybody having set one."""
JITTER: Final = 0.1
"""Part of the wait by which jobs that failed together come back apart."""


def next_attempt(job: MXJob, now: datetime, policy: Policy = DEFAULT) -> datetime | None:
    """When the pods of the next attempt may be made; None where there is nothing to wait for.

    Neither a resumed job waits, nor one after its first disruption, nor one whose last attempt ended in the future: a
    clock was set back since, and nobody knows how long ago that was.
    """
    status = job.status
    since = next(
        (c.last_update_time for c in status.conditions if c.type == conditions.RESTARTING and c.status == "True"), None
    )
    doublings = (status.restarts_count_towards_max or status.restarts - 1) - 1
    if since is None or doublings < 0 or since > now + CLOCK_SKEW:
        return None
    wait = min(policy.first_backoff * (1 << min(doublings, 10)), policy.longest_backoff)
    return after(since, wait.total_seconds() * (1 + JITTER * _fraction(job)))


def _fraction(job: MXJob) -> float:
    """A number in [0, 1) that differs from job to job and attempt to attempt, and is the same at every look."""
    number: int = zlib.crc32(f"{job.metadata.uid}/{job.status.restarts}".encode())
    return number / 2**32
