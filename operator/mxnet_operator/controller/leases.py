"""Time left of the leases of jobs, since this process saw each renewed, on its own clock.

As in leader election, no clock of another machine matters. Time in which renewals could not be seen does not count:
whatever kept the controller from the API server may have kept the holders from it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from mxnet_operator.api.types import MXJob
from mxnet_operator.controller.memory import JobMemory, SeenLease
from mxnet_operator.plan import kept_lease


@dataclass
class Leases:
    """Leases of the jobs that are reconciled."""

    heard_since: Callable[[], float | None] = lambda: float("-inf")
    """Function that returns since when, on `clock`, every change of jobs was seen, or None."""
    clock: Callable[[], float] = time.monotonic

    def left(self, memory: JobMemory, job: MXJob) -> timedelta | None:
        """Return how long the job's lease still runs, zero or less once it has expired; None without a lease.

        Its time begins anew with each term of leadership, for which the memory of the lease is dropped.
        """
        lease = kept_lease(job)
        if lease is None:
            memory.lease = None
            return None
        now, uid = self.clock(), job.metadata.uid
        seen = memory.lease
        if seen is None or (seen.uid, seen.lease) != (uid, lease):
            seen = memory.lease = SeenLease(uid, lease, now)
        heard_since = self.heard_since()
        began = now if heard_since is None else max(seen.at, heard_since)
        return timedelta(seconds=lease.duration - (now - began))
