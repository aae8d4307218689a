"""Lease of a job: annotations by which its holder claims it; while the lease is renewed, the job goes on.

The holder renews it by writing another renew time. The controller ends a job whose lease it has not seen renewed for
the lease's duration, on its own clock: the time in the annotation is for people.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

import msgspec

from mxnet_operator.api import names

LeaseAction = Literal["delete", "suspend"]
_LONGEST: Final = 10 * 365 * 24 * 3600


class JobLease(msgspec.Struct, frozen=True):
    """Lease as a job's annotations state it; equal leases have not been renewed in between."""

    duration: int
    """Duration in seconds."""
    action: LeaseAction = "delete"
    holder: str = ""
    renewed: str = ""
    """Time of the last renewal, as the holder wrote it."""


def lease_of(annotations: Mapping[str, str]) -> JobLease | None:
    """Return the lease that the annotations state; None where they state no valid one.

    A duration that is no whole number of seconds between 1 and ten years, or an unknown action, makes no lease: a
    job must not end because of a mistake in an annotation.
    """
    duration = annotations.get(names.LEASE_DURATION_ANNOTATION, "")
    if not (duration.isascii() and duration.isdecimal() and len(duration) < 12 and 0 < int(duration) <= _LONGEST):
        return None
    action = annotations.get(names.LEASE_ACTION_ANNOTATION, "delete")
    for known in get_args(LeaseAction):
        if action == known:
            holder = annotations.get(names.HOLDER_ANNOTATION, "")
            return JobLease(int(duration), known, holder, annotations.get(names.LEASE_RENEW_TIME_ANNOTATION, ""))
    return None


def annotations_of(lease: JobLease) -> dict[str, str]:
    return {
        names.HOLDER_ANNOTATION: lease.holder,
        names.LEASE_DURATION_ANNOTATION: str(lease.duration),
        names.LEASE_ACTION_ANNOTATION: lease.action,
        names.LEASE_RENEW_TIME_ANNOTATION: lease.renewed,
    }
