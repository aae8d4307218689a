"""Memory of one job, kept from one reconciliation to the next, and dropped when the job is gone."""

import msgspec

from mxnet_operator.api.formats.format import Format
from mxnet_operator.api.job_lease import JobLease


class Decoded(msgspec.Struct, frozen=True):
    """Decoding results that hold as long as a job's spec does."""

    uid: str
    generation: int
    format: Format
    mistakes: tuple[str, ...]


class SeenLease(msgspec.Struct, frozen=True):
    """Lease of a job, as it was when this process saw it renewed."""

    uid: str
    """UID of the job."""
    lease: JobLease
    at: float


class JobMemory(msgspec.Struct):
    """What the reconciler remembers of one job; nothing of it is needed for correct decisions after a restart."""

    decoded: Decoded | None = None
    lease: SeenLease | None = None
    failures: int = 0
    """Number of consecutive failures to reconcile it."""
    failure_written: float | None = None
    """Time at which the last failure was reported, on the reporter's clock."""

    def begin_term(self) -> None:
        """Begin a term of leadership: times that were measured in an earlier one no longer count."""
        self.lease = None
