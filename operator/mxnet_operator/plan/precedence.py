"""Precedence of a gang that has waited long: younger jobs that ask for what it lacks get no pods until it is placed.

Opt-in, by `Policy.gang_precedence_after`. A scheduler that places whole gangs may let small ones pass a large one for
ever. Nothing is taken from a job that has pods. `docs/decisions/0100-a-gang-that-waits-may-come-first.md`.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.quantities import Resources, add, pod_requests, written
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan.attempt import pods_of_earlier_attempts
from mxnet_operator.plan.fixed_replicas import as_started
from mxnet_operator.plan.gang import GangState, PodGroupView, gang_of, observed_gang
from mxnet_operator.plan.observed import HeldBack, Observed
from mxnet_operator.plan.queue import queue_of
from mxnet_operator.plan.replicas import Outcome, Replica, replicas_of
from mxnet_operator.plan.shortage import shortage

LONGEST: Final = 10
"""Times of `gang_precedence_after` for which a gang comes first at the most."""
_STARTS: Final = ("", conditions.CREATED, conditions.SUSPENDED)

Selector = tuple[tuple[str, str], ...]


class Claimant(msgspec.Struct, frozen=True, kw_only=True):
    """Job that asks for extended resources: what decides whether it comes before another."""

    job: str
    """Its `namespace/name`."""
    created_at: datetime
    amounts: Resources
    """Requests of all of its pods, by extended resource."""
    selectors: Mapping[str, tuple[Selector, ...]]
    """Node selectors of the replica types that ask for each of these."""
    priority_classes: frozenset[str]
    """Priority classes of these replica types; an empty one is the cluster's default."""
    starts: bool = False
    """Whether nothing of it exists, so that it can be held back."""
    waits_since: datetime | None = None
    """Creation of the last pod of a gang of which none has a node; None where it isn't such a gang."""
    lacks: frozenset[str] = frozenset()
    """Extended resources that no node has enough of for a pod of it, in the scheduler's words."""


def claimant(job: MXJob, observed: Observed) -> Claimant | None:
    """Return what a job as written claims; None where it neither waits for extended resources nor can be held back.

    A job in a queue of Kueue's has its place there.
    """
    is_queued = bool(queue_of(job)) and observed.queues.state != "Absent"
    created_at = job.metadata.creation_timestamp
    is_ending = job.metadata.deletion_timestamp is not None or conditions.is_terminal(job.status)
    if is_queued or is_ending or job.spec.run_policy.suspend or created_at is None:
        return None
    job, observed = as_started(with_defaults(job)), observed.owned_by(job.metadata.uid)
    gang = gang_of(job)
    if gang is not None and gang.minimum > gang.members:
        return None
    claims = list(_claims(job))
    if not claims:
        return None
    waiting = _waiting_gang(job, observed)
    lacking = shortage(job, waiting).missing if waiting else {}
    return Claimant(
        job=job.metadata.key,
        created_at=created_at,
        amounts=add(each.amounts for each in claims),
        selectors={
            name: tuple(each.selector for each in claims if name in each.amounts)
            for each in claims
            for name in each.amounts
        },
        priority_classes=frozenset(each.priority_class for each in claims),
        starts=_starts(job, observed),
        waits_since=max((each.pod.created_at for each in waiting if each.pod and each.pod.created_at), default=None),
        lacks=frozenset(filter(is_extended, lacking)),
    )


def comes_before(first: Claimant, other: Claimant, resource: str) -> bool:
    """Return whether a gang that lacks a resource keeps another job from getting pods.

    It is older, of the same priority class, and nothing says that the two want different nodes. A job of a higher class
    goes before both; one of a lower class is what the scheduler preempts.
    """
    return (
        other.starts
        and resource in other.amounts
        and first.created_at < other.created_at
        and first.priority_classes == other.priority_classes
        and any(
            not _exclude_each_other(one, another)
            for one in first.selectors.get(resource, ())
            for another in other.selectors[resource]
        )
    )


def held_back(job: MXJob, observed: Observed) -> HeldBack | None:
    """Return the gang that comes before a job with defaults; None once the job has pods, however it got them."""
    return observed.held_back_by if _starts(job, observed) else None


def with_held_back(
    current: tuple[Condition, ...], job: MXJob, held: HeldBack | None, now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with PodsScheduled False while a job is held back; without that once it isn't."""
    if held is None:
        return tuple(
            each for each in current if (each.type, each.reason) != (conditions.PODS_SCHEDULED, conditions.REASON_HELD)
        )
    is_near = held.job.partition("/")[0] == job.metadata.namespace
    message = (
        f"The job waits for its turn, and gets no pods yet: {held.job if is_near else 'a job of another namespace'},"
        f" which has waited for {held.waits_for} since {held.since:%Y-%m-%dT%H:%M:%SZ}, comes first."
    )
    return conditions.set_condition(
        current, conditions.PODS_SCHEDULED, conditions.REASON_HELD, message, now, status="False"
    )


def is_extended(resource: str) -> bool:
    """Return whether a resource is an extended one, as Kubernetes has it: of a domain other than its own."""
    return "/" in resource and "kubernetes.io/" not in resource


def amount_in_words(claims: Claimant, resource: str) -> str:
    """Return how much of a resource a job asks for: `12 nvidia.com/gpu`."""
    return f"{written(claims.amounts[resource])} {resource}"


class _Claims(msgspec.Struct, frozen=True):
    """Extended resources that the replicas of one type ask for."""

    amounts: Resources
    selector: Selector
    priority_class: str


def _claims(job: MXJob) -> Iterator[_Claims]:
    policy = job.spec.run_policy.scheduling_policy
    of_job = (policy.priority_class if policy is not None else None) or ""
    for spec in job.spec.specs_in_use.values():
        pod: dict[str, Any] = spec.template["spec"]
        try:
            requests = pod_requests(pod)
        except ValueError:
            continue  # The API server rejects such a pod, and the job says so.
        named = {names.GPU if name == names.OLD_GPU else name: amount for name, amount in requests.items()}
        count = spec.replicas or 0
        amounts = {name: amount * count for name, amount in named.items() if is_extended(name) and amount * count}
        if amounts:
            selector = tuple(sorted((pod.get("nodeSelector") or {}).items()))
            yield _Claims(amounts, selector, pod.get("priorityClassName") or of_job)


def _waiting_gang(job: MXJob, observed: Observed) -> tuple[Replica, ...]:
    """Return the replicas of a gang all of whose pods exist and none has a node; nothing of any other job."""
    state: GangState | None = observed_gang(job, observed)
    if state is None or pods_of_earlier_attempts(job, observed):
        return ()
    replicas = replicas_of(job, observed)
    waits = all(
        each.outcome is Outcome.WAITING and each.pod is not None and not each.pod.is_placed and not each.pod.deleting
        for each in replicas
    )
    return replicas if waits else ()


def _starts(job: MXJob, observed: Observed) -> bool:
    """Return whether a job has no pods nor a pod group, and is not between two attempts."""
    has_group = any(isinstance(child, PodGroupView) for child in observed.children)
    return not observed.pods and not has_group and conditions.state_of(job.status.conditions) in _STARTS


def _exclude_each_other(one: Selector, another: Selector) -> bool:
    """Return whether no node has the labels of both selectors."""
    wanted = dict(one)
    return any(wanted.get(key, value) != value for key, value in another)


def precedence_lasts(after: timedelta, times_before: int) -> timedelta:
    """Return how long a gang comes first that has done so this many times before, and was not placed."""
    return after * min(times_before + 1, LONGEST)


def next_by_age(waiting: int, in_vain: int) -> int:
    """Return which of so many gangs comes first, 0 for the oldest, after so many in succession that weren't placed.

    The oldest one every second time, the next one every fourth, and so on: no gang is left out, whichever never fit.
    """
    number = in_vain + 1
    trailing_zeros = (number & -number).bit_length() - 1
    return min(trailing_zeros, waiting - 1)
