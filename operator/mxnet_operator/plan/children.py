"""Children of a job other than its pods: which are missing or outdated, and which are deleted at its end.

Pods are judged one by one, and every policy reads them. All other kinds are alike: a job either wants an object or it
doesn't. So each kind is one `ChildRule`; `plan` is given those whose kinds the server serves.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import (
    CreateChild,
    CreateService,
    DeleteChild,
    DeleteService,
    ReleaseChild,
    TouchChild,
)
from mxnet_operator.plan.observed import ChildView, Observed
from mxnet_operator.readers.pods import ENDED


class ServiceView(ChildView, frozen=True, kw_only=True, gc=False):
    """Observed Service of a job."""


class ChildRule(msgspec.Struct, frozen=True):
    """Rule that says which objects of one kind a job wants."""

    view: type[ChildView]
    """View by which objects of the kind are observed."""
    wanted: Callable[[MXJob], tuple[CreateChild, ...]]
    """Function that returns what a job with defaults wants while it runs, in the order of creation."""
    delete: type[DeleteChild]
    """Action that deletes an object of the kind."""
    release: type[ReleaseChild] | None = None
    """Action that removes the finalizers of an object that is being replaced; None for a kind without finalizers."""
    goes_at_the_end: bool = False
    """Whether a finished job deletes it under every cleanPodPolicy."""
    outlives_pods: bool = False
    """Whether a job that is suspended or over deletes it only once no pod of it waits or runs."""
    touch: type[TouchChild] | None = None
    """Action that changes an object for its scheduler to try pods again; None for a kind that needs none."""
    admits: Callable[[ChildView | None], bool] = lambda _: True
    """Function that returns whether pods may be created while the object is as observed (None: not there yet)."""


Rules = tuple[ChildRule, ...]


def missing_children(job: MXJob, observed: Observed, rules: Rules) -> tuple[CreateChild, ...]:
    """Return the creations of missing children; pods rely on them, so they come first."""
    missing = (creation for _, creation, found in _wanted(job, observed, rules) if found is None)
    if not _is_placed(observed):
        return tuple(missing)
    return tuple(msgspec.structs.replace(creation, beside_pods=True) for creation in missing)


def outdated_children(job: MXJob, observed: Observed, rules: Rules) -> tuple[DeleteChild | ReleaseChild, ...]:
    """Return the deletions of outdated children, which are created again once they are gone.

    Only while no pod has a node: nothing is taken from under a gang that runs.
    """
    if _is_placed(observed):
        return ()
    return tuple(
        rule.release(found.name, found.uid) if found.deleting and rule.release else rule.delete(found.name, found.uid)
        for rule, creation, found in _wanted(job, observed, rules)
        if found is not None and _is_outdated(creation, found)
        if not found.deleting or (rule.release is not None and found.finalizers)
    )


def pods_are_admitted(job: MXJob, observed: Observed, rules: Rules) -> bool:
    """Return whether what pods rely on exists, or the same plan creates it first, and none of it is replaced."""
    is_placed = _is_placed(observed)
    return all(
        rule.admits(found) and (found is None or is_placed or not (found.deleting or _is_outdated(creation, found)))
        for rule, creation, found in _wanted(job, observed, rules)
    )


def child_deletions(observed: Observed, rules: Rules, *, at_the_end: bool = False) -> tuple[DeleteChild, ...]:
    """Return the deletion of every child other than a pod, or only of the ones always deleted `at_the_end`.

    Terminating ones are skipped.
    """
    has_pods = any(pod.phase not in ENDED for pod in observed.pods)
    return tuple(
        rule.delete(child.name, child.uid)
        for rule in rules
        if (rule.goes_at_the_end or not at_the_end) and not (rule.outlives_pods and has_pods)
        for child in observed.children
        if type(child) is rule.view and not child.deleting
    )


def _wanted(job: MXJob, observed: Observed, rules: Rules) -> Iterator[tuple[ChildRule, CreateChild, ChildView | None]]:
    """Yield each child that the job wants, with its rule and the observed object."""
    existing = {(type(child), child.name): child for child in observed.children}
    for rule in rules:
        for creation in rule.wanted(job):
            yield rule, creation, existing.get((rule.view, creation.name))


def _is_placed(observed: Observed) -> bool:
    return any(pod.is_placed for pod in observed.pods)


def _is_outdated(creation: CreateChild, found: ChildView) -> bool:
    return creation.fingerprint != found.fingerprint


def wanted_services(job: MXJob) -> tuple[CreateService, ...]:
    """Return the Services of a job with defaults."""
    name = job.metadata.name
    roots = (
        CreateService(names.replica_name(name, replica_type, index), "root")
        for replica_type, spec in job.spec.mx_replica_specs.items()
        if TYPES[replica_type].is_root
        for index in range(spec.replicas or 0)
    )
    return (*roots, CreateService(names.subdomain(name), "replicas"))


SERVICES: Final = ChildRule(ServiceView, wanted_services, DeleteService)
