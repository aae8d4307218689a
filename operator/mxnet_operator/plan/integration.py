"""What an integration decides about a job: the hooks that `plan` calls, in the order in which it calls them.

An integration is another system on the cluster: a queue, a gang scheduler, a workflow engine. `plan` knows none of
them by name.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from enum import Enum
from typing import TypeVar

import msgspec

from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan.actions import Action, CreatePod, Event, Plan
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.placement import Unplaced
from mxnet_operator.plan.replicas import Replica
from mxnet_operator.plan.restart import Teardown

T = TypeVar("T")


class Standing(Enum):
    """Whether a job may have pods."""

    RUNS = "runs"
    """It may."""
    WAITS = "waits"
    """It has no pods, or gives them up."""
    HOLDS = "holds"
    """It goes on as it is, and gets no further pods."""
    UNKNOWN = "unknown"
    """Nothing is decided yet: the controller has just begun."""


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """Admission of a job, by its queue or by its user's `suspend`."""

    standing: Standing = Standing.RUNS
    waits: str = ""
    """Words for a job that waits: `waits in queue a`; empty for one that is suspended."""
    requeue_after: timedelta | None = None


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """Job with what is observed of it, as an integration is asked about it."""

    asked: MXJob
    """Job as its user wrote it."""
    job: MXJob
    """Job with defaults, as it was started."""
    observed: Observed
    now: datetime
    replicas: tuple[Replica, ...] = ()
    """Replicas of the present attempt."""
    present: Observed = Observed()
    """Observation without pods of earlier attempts."""
    admission: Admission = Admission()


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """What an integration wants done and said."""

    conditions: tuple[Condition, ...]
    """Conditions of the job: those that the hook was called with, and the integration's own."""
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    requeue_after: timedelta | None = None


class IntegrationPolicy:
    """Decisions of an integration; each method decides nothing by default."""

    def over(self, job: MXJob, observed: Observed) -> Plan | None:
        """Return the plan for an unfinished job that is to end with something else, or when to look again."""

    def admission(self, state: JobState) -> Admission | None:
        """Return whether the job may have pods; None for no opinion."""

    def waiting(self, state: JobState, current: tuple[Condition, ...], *, has_pods: bool) -> Effects:
        """Return the effects for a job that waits or is suspended."""
        return Effects(conditions=current)

    def teardown(self, state: JobState) -> Teardown | None:
        """Return the teardown of an attempt of which nothing has failed; needs a fresh list of pods."""

    def unplaced(self, state: JobState) -> Unplaced | None:
        """Return why no pod of the job gets a node, where the scheduler says nothing on the pods themselves."""

    def running(self, state: JobState, current: tuple[Condition, ...]) -> Effects:
        """Return the effects for a job that may run."""
        return Effects(conditions=current)

    def creations(self, state: JobState, pods: tuple[CreatePod, ...]) -> tuple[CreatePod, ...]:
        """Return the pods to create, with what the integration adds to each."""
        return pods

    def finished(self, job: MXJob, observed: Observed, now: datetime) -> tuple[Action, ...]:
        """Return the actions for a job that is over."""
        return ()

    def notices(self, state: JobState) -> Iterator[Event]:
        """Yield the Warnings about a manifest, which are posted once."""
        return iter(())


Policies = tuple[IntegrationPolicy, ...]


def first(policies: Policies, ask: Callable[[IntegrationPolicy], T | None]) -> T | None:
    """Return the first answer that isn't None."""
    answers: Iterable[T | None] = map(ask, policies)
    return next((each for each in answers if each is not None), None)


def fold(
    policies: Policies,
    conditions: tuple[Condition, ...],
    ask: Callable[[IntegrationPolicy, tuple[Condition, ...]], Effects],
) -> Effects:
    """Return the effects of all policies together; each gets the conditions of the one before."""
    folded = Effects(conditions=conditions)
    for policy in policies:
        each = ask(policy, folded.conditions)
        waits = [wait for wait in (folded.requeue_after, each.requeue_after) if wait is not None]
        folded = Effects(
            conditions=each.conditions,
            actions=(*folded.actions, *each.actions),
            events=(*folded.events, *each.events),
            requeue_after=min(waits, default=None),
        )
    return folded
