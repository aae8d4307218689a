"""Children of a job other than its pods: which are missing, and which go when the job gives them up.

Pods are judged one by one, and every policy reads them. All other kinds are alike: a job either wants an object or it
doesn't. So each is one `ChildRule`, and `Observed.rules` has those whose kinds the server serves.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import CreateChild, DeleteChild

if TYPE_CHECKING:
    from mxnet_operator.plan.observed import Observed


class ChildView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A child of a job that is no pod; each kind has a class of its own, with what its policy reads besides."""

    name: str
    uid: str
    owner_uid: str
    deleting: bool = False


class ChildRule(msgspec.Struct, frozen=True):
    """Which objects of one kind a job wants."""

    view: type[ChildView]
    """What objects of the kind are observed as."""
    wanted: Callable[[MXJob], tuple[CreateChild, ...]]
    """All that a job with defaults wants while it runs, in the order in which they are created."""
    delete: type[DeleteChild]
    """The action that deletes one."""


def missing_children(job: MXJob, observed: "Observed") -> tuple[CreateChild, ...]:
    """Children to create; they come before pods, which rely on them."""
    existing = {(type(child), child.name) for child in observed.children}
    return tuple(
        creation
        for rule in observed.rules
        for creation in rule.wanted(job)
        if (rule.view, creation.name) not in existing
    )


def child_deletions(observed: "Observed") -> tuple[DeleteChild, ...]:
    """The deletion of every child that is no pod; nothing for those that are terminating already."""
    return tuple(
        rule.delete(child.name, child.uid)
        for rule in observed.rules
        for child in observed.children
        if type(child) is rule.view and not child.deleting
    )
