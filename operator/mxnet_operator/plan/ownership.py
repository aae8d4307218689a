"""Ownership of an object that already has the name of a child to be created.

It is the job's own only if its owner's uid and its attempt match and it isn't being deleted: a name proves nothing.
"""

from enum import Enum

import msgspec

from mxnet_operator.api.kinds import kind_of
from mxnet_operator.api.types import MXJob


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Existing object that has the name."""

    owner_api_version: str = ""
    owner_kind: str = ""
    """Controller reference of the object; empty without one, as all fields of the owner."""
    owner_name: str = ""
    owner_uid: str = ""
    attempt: str = "0"
    deleting: bool = False
    is_watched: bool = True
    """Whether it has the label by which the controller watches: an older operator's child has not."""


class Holder(Enum):
    """Kind of owner that has the name."""

    THE_JOB = "the job"
    """The object is the one that was to be created."""
    LEFT_OVER = "left over"
    """The object will be gone soon: it is terminating, of another attempt, or of a deleted job of the same name."""
    ANOTHER = "another"
    """The object belongs to another owner, about which the user must decide."""


def holder_of_name(job: MXJob, attempt: str, found: Found) -> Holder:
    """Return who owns the name of a child that was to be created for this attempt."""
    is_ours = found.owner_uid == job.metadata.uid
    if is_ours and attempt == found.attempt and not found.deleting:
        return Holder.THE_JOB
    owner, own = kind_of(found.owner_api_version, found.owner_kind), kind_of(job.api_version, job.kind)
    is_left_over = (owner, found.owner_name) == (own, job.metadata.name)
    return Holder.LEFT_OVER if is_ours or found.deleting or is_left_over else Holder.ANOTHER
