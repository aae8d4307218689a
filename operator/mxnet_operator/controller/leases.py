"""Time left of the leases of jobs, since this process saw each renewed, on its own clock.

As in leader election, no clock of another machine matters. Time in which renewals could not be seen does not count:
whatever kept the controller from the API server may have kept the holders from it.
"""

import time
from collections.abc import Callable
from datetime import timedelta

import msgspec

from mxnet_operator.api.job_lease import JobLease
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import kept_lease


class _Seen(msgspec.Struct, frozen=True):
    uid: str
    """UID of the job."""
    lease: JobLease
    at: float


class Leases:
    """Leases of the jobs that are reconciled."""

    def __init__(
        self,
        heard_since: Callable[[], float | None] = lambda: float("-inf"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an empty set; `heard_since` returns since when, on `clock`, every change of jobs was seen, or None."""
        self._heard_since = heard_since
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def begin(self) -> None:
        """Restart the time of all leases: from now on this process leads."""
        self._seen.clear()

    def forget(self, key: str) -> None:
        """Drop the lease of a deleted job."""
        self._seen.pop(key, None)

    def left(self, key: str, job: MXJob) -> timedelta | None:
        """Return how long the job's lease still runs, zero or less once it has expired; None without a lease."""
        lease = kept_lease(job)
        if lease is None:
            self.forget(key)
            return None
        now, uid = self._clock(), job.metadata.uid
        seen = self._seen.get(key)
        if seen is None or (seen.uid, seen.lease) != (uid, lease):
            seen = self._seen[key] = _Seen(uid, lease, now)
        heard_since = self._heard_since()
        began = now if heard_since is None else max(seen.at, heard_since)
        return timedelta(seconds=lease.duration - (now - began))
