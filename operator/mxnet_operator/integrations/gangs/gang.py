"""The gang of a job: how many of its pods are placed at once or not at all, and the pod group that says so.

A job of several pods has one without asking, since half a gang holds what another job could run with. The fields of
`runPolicy.schedulingPolicy` are training-operator 1.8.1's; `docs/gangs.md` says what each back end makes of them.
"""

import zlib
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.quantities import add, pod_requests, quantity, written
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob, SchedulingPolicy
from mxnet_operator.plan.actions import CreateChild, DeleteChild, ReleaseChild, TouchChild
from mxnet_operator.plan.children import ChildRule, Rules
from mxnet_operator.plan.fewer_workers import placed_at_once
from mxnet_operator.plan.observed import ChildView
from mxnet_operator.plan.replicas import replicas_in, restart_scope

OWN_GROUPS: Final = (
    "scheduling.x-k8s.io/pod-group",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
)
"""Labels and annotations by which a template puts its pods into a group of the user's own."""


_LONGEST_PREFIX: Final = 54
"""Characters of a job's name before a suffix of nine: a label's value has 63 at the most."""


class Gang(msgspec.Struct, frozen=True):
    """Requests of a job to a gang scheduler."""

    members: int
    """Its pods."""
    minimum: int
    """How many are placed at once or not at all; more than `members` can never be placed."""
    resources: dict[str, str]
    """What so many ask for together, by resource; or minResources, as its user wrote it."""
    priority_class: str = ""
    queue: str = ""
    schedule_timeout: int | None = None
    """Seconds."""


class PodGroupView(ChildView, frozen=True, kw_only=True, gc=False):
    """A pod group of a job, whatever its back end calls it."""

    ready: bool = True
    """Whether the back end lets pods be created."""
    says: str = ""
    """The scheduler's own words for why it waits."""
    touched_at: datetime | None = None
    """When it was changed last to have its scheduler try the gang again."""


class GangWorkloadView(ChildView, frozen=True, kw_only=True, gc=False):
    """The Workload (scheduling.k8s.io) that a native PodGroup is made from."""


class CreatePodGroup(CreateChild, frozen=True, gc=False):
    """Create the pod group of a job."""


class DeletePodGroup(DeleteChild, frozen=True, gc=False):
    """Delete a pod group, if it is still the one with this uid."""


class DeletePodGroupInForeground(DeletePodGroup, frozen=True, gc=False):
    """Delete a pod group so that its scheduler sees it change, if it is still the one with this uid."""

    propagation = "Foreground"


class ReleasePodGroup(ReleaseChild, frozen=True, gc=False):
    """Take the finalizers off a pod group that waiting pods hold."""


class TouchPodGroup(TouchChild, frozen=True, gc=False):
    """Write the time into a pod group: its scheduler then tries the gang again."""


class CreateGangWorkload(CreateChild, frozen=True, gc=False):
    """Create the Workload of a native pod group."""


class DeleteGangWorkload(DeleteChild, frozen=True, gc=False):
    """Delete the Workload of a native pod group, if it is still the one with this uid."""


def gang_of(job: MXJob) -> Gang | None:
    """Return the gang of a job with defaults; None where its pods are placed one by one.

    That is where it has but one, where they restart one by one and nobody asks for a gang, or where a template names a
    group of the user's own.
    """
    policy = job.spec.run_policy.scheduling_policy
    members = replicas_in(job)
    if any(map(_has_own_group, _templates(job))):
        return None
    if policy is None and (members < 2 or (restart_scope(job) == "Replica" and not _tunes(job))):
        return None
    policy = policy or SchedulingPolicy()
    minimum = placed_at_once(job)
    return Gang(
        members=members,
        minimum=minimum,
        resources=_as_text(policy.min_resources) if policy.min_resources else _requests(job, minimum),
        priority_class=policy.priority_class or _common_priority_class(job),
        queue=policy.queue or "",
        schedule_timeout=policy.schedule_timeout_seconds,
    )


def fingerprint(gang: Gang) -> str:
    """Return a short text that differs for gangs that differ."""
    return f"{zlib.crc32(msgspec.json.encode(gang, order='deterministic')):08x}"


def wanted_groups(job: MXJob) -> tuple[CreatePodGroup, ...]:
    """Return the pod group of a job with defaults, named as 1.8.1 named it."""
    gang = gang_of(job)
    return () if gang is None else (CreatePodGroup(job.metadata.name, fingerprint=fingerprint(gang)),)


def unique_group_name(job: MXJob) -> str:
    """Return a pod group's name that no other job ever has, nor this one before it was suspended."""
    run = f"{job.metadata.uid}/{job.status.first_attempt}"
    return f"{job.metadata.name[:_LONGEST_PREFIX]}-{zlib.crc32(run.encode()):08x}"


def wanted_unique_groups(job: MXJob) -> tuple[CreatePodGroup, ...]:
    """Return the pod group of a job with defaults, named by `unique_group_name`."""
    name = unique_group_name(job)
    return tuple(CreatePodGroup(name, fingerprint=each.fingerprint) for each in wanted_groups(job))


def wanted_workloads(job: MXJob) -> tuple[CreateGangWorkload, ...]:
    return tuple(CreateGangWorkload(each.name, fingerprint=each.fingerprint) for each in wanted_groups(job))


def is_ready(group: ChildView | None) -> bool:
    """Whether a back end that has pods wait for its group lets them be created."""
    return isinstance(group, PodGroupView) and group.ready


PODGROUPS: Final = ChildRule(PodGroupView, wanted_groups, DeletePodGroup, ReleasePodGroup, goes_at_the_end=True)
READY_PODGROUPS: Final = msgspec.structs.replace(PODGROUPS, admits=is_ready)
"""For a scheduler that rejects pods until its group is admitted."""
UNIQUE_PODGROUPS: Final = msgspec.structs.replace(
    PODGROUPS, wanted=wanted_unique_groups, delete=DeletePodGroupInForeground, outlives_pods=True, touch=TouchPodGroup
)
"""For scheduler-plugins, which remembers a gang by its name, and tries others again once it sees a group change."""
WORKLOADS: Final = ChildRule(GangWorkloadView, wanted_workloads, DeleteGangWorkload, goes_at_the_end=True)


def has_gangs(rules: Rules) -> bool:
    return any(rule.view is PodGroupView for rule in rules)


def _templates(job: MXJob) -> Iterator[dict[str, Any]]:
    return (spec.template for spec in job.spec.specs_in_use.values())


def _has_own_group(template: dict[str, Any]) -> bool:
    metadata = template.get("metadata") or {}
    named = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return "schedulingGroup" in template["spec"] or any(name in named for name in OWN_GROUPS)


def _tunes(job: MXJob) -> bool:
    return any(TYPES[replica_type].tunes for replica_type in job.spec.specs_in_use)


def _common_priority_class(job: MXJob) -> str:
    """Return the priority class of the templates, where all name one: a group's goes before its pods'."""
    classes = {template["spec"].get("priorityClassName") or "" for template in _templates(job)}
    return classes.pop() if len(classes) == 1 else ""


def _requests(job: MXJob, count: int) -> dict[str, str]:
    """Add up what the first so many pods ask for; nothing where a quantity can't be read, as their pods report."""
    total: dict[str, Decimal] = {}
    left = count
    for spec in job.spec.specs_in_use.values():
        taken = min(left, spec.replicas or 0)
        left -= taken
        try:
            one = pod_requests(spec.template["spec"])
        except ValueError:
            return {}
        total = add([total, {name: amount * taken for name, amount in one.items()}])
    return {names.GPU if name == names.OLD_GPU else name: written(amount) for name, amount in total.items() if amount}


def _as_text(resources: dict[str, Any]) -> dict[str, str]:
    """Return what a user wrote; what is no quantity is left out, and reported for the pods' own requests."""
    return {name: str(amount) for name, amount in resources.items() if _is_quantity(amount)}


def _is_quantity(amount: Any) -> bool:
    try:
        quantity(amount)
    except ValueError:
        return False
    return True
