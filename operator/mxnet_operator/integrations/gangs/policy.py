"""Decisions about a gang: it starts whole, and one that holds a part of its nodes and gets no more gives all back.

A gang scheduler places the pods of a gang together at first and promises nothing later: another gang that waits may
take the room of a pod that went (kube-scheduler 1.36, measured). Two gangs that each hold a part wait for each other
for ever.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.pod_additions import PodAdditions
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.integrations.gangs.gang import GangState, gang_of, has_gangs, observed_gang
from mxnet_operator.integrations.gangs.local import (
    gang_member,
    gang_priority,
    outdated_members,
    replaced_for_priority,
    with_ignored_priority,
)
from mxnet_operator.integrations.gangs.retry import time_until_touched, touched_groups
from mxnet_operator.plan.actions import CreatePod, Event
from mxnet_operator.plan.attempt import restart_scope
from mxnet_operator.plan.integration import Effects, IntegrationPolicy, JobState
from mxnet_operator.plan.placement import Unplaced
from mxnet_operator.plan.replicas import Outcome, Replica
from mxnet_operator.plan.restart import Teardown, counted_restart
from mxnet_operator.plan.shortage import shortage
from mxnet_operator.plan.waits import left_of, soonest

_AT_ONCE: Final = timedelta(0)


class GangPolicy(IntegrationPolicy):
    """Decisions about jobs whose pods are placed at once or not at all."""

    def __init__(self, *, is_local: bool = False, incomplete: timedelta = timedelta(minutes=1)) -> None:
        """Create a policy; `is_local` where the scheduler is the local cluster's, which goes by the pods' annotations.

        `incomplete` is how long a gang keeps the nodes of a part of its pods while there are none for the rest.
        """
        self.is_local, self.incomplete = is_local, incomplete

    def teardown(self, state: JobState) -> Teardown | None:
        """Return the teardown of an incomplete gang, or of one that waits by another priority class than the job's."""
        if self._time_until_given_back(state) == _AT_ONCE:
            return self._give_back(state)
        return replaced_for_priority(state.job, state.replicas) if self.is_local else None

    def unplaced(self, state: JobState) -> Unplaced | None:
        """Return what keeps a whole gang from being scheduled."""
        gang = observed_gang(state.job, state.observed)
        if gang is None and self.is_local and (of_job := gang_of(state.job)) is not None:
            gang = GangState(of_job, None)
        return _unplaced(gang, state.replicas)

    def running(self, state: JobState, current: tuple[Condition, ...]) -> Effects:
        """Keep the gang's marks up to date, and have its scheduler try it again."""
        job, now = state.job, state.now
        reported = with_ignored_priority(current, job, state.replicas if self.is_local else (), now)
        members = outdated_members(job, state.present.pods) if self.is_local else ()
        return Effects(
            conditions=reported,
            actions=(*touched_groups(job, state.present, now), *members),
            requeue_after=soonest(self._time_until_given_back(state), time_until_touched(job, state.present, now)),
        )

    def creations(self, state: JobState, pods: tuple[CreatePod, ...]) -> tuple[CreatePod, ...]:
        """Add the annotations by which the local cluster's scheduler goes."""
        return tuple(
            msgspec.structs.replace(each, additions=(*each.additions, self._marks(state, each))) for each in pods
        )

    def notices(self, state: JobState) -> Iterator[Event]:
        """Yield a Warning about the fields of schedulingPolicy that nothing acts on."""
        return iter(()) if has_gangs(state.observed) else _not_acted_on(state.asked, is_local=self.is_local)

    def _marks(self, state: JobState, pod: CreatePod) -> PodAdditions:
        annotations = [(names.GANG_MEMBER_ANNOTATION, gang_member(state.job, pod.attempt))]
        priority_class = gang_priority(state.job, pod.type) if self.is_local else ""
        if priority_class:
            annotations.append((names.GANG_PRIORITY_ANNOTATION, priority_class))
        return PodAdditions(annotations=tuple(annotations), priority_class=priority_class)

    def _time_until_given_back(self, state: JobState) -> timedelta | None:
        """Return how long an incomplete gang still waits for the rest; zero once it gives all back.

        None where it holds nothing, has what it needs, or restarts pod by pod.
        """
        observed = observed_gang(state.job, state.observed)
        if observed is None or restart_scope(state.job) != "Job":
            return None
        pods = [replica.pod for replica in state.replicas if replica.pod is not None]
        waiting = [
            replica.pod for replica in state.replicas if replica.outcome is Outcome.WAITING and replica.pod is not None
        ]
        unplaced = [pod for pod in waiting if not pod.is_placed]
        placed = [pod for pod in pods if pod.is_placed]
        is_whole = len(placed) >= observed.gang.minimum or len(placed) + len(unplaced) < len(state.replicas)
        if not placed or not unplaced or is_whole:
            return None
        times = (*(pod.placed_at for pod in placed), *(pod.created_at for pod in unplaced))
        since = max((time for time in times if time is not None), default=None)
        return left_of(self.incomplete, since, state.now)

    def _give_back(self, state: JobState) -> Teardown:
        """Tear down an incomplete gang, which counts as no failure."""
        return Teardown(
            (),
            0,
            f"mxjob {state.job.metadata.name} gives back the room that it holds, since no more has come for"
            f" {self.incomplete.seconds} s: {shortage(state.job, state.replicas)} {counted_restart(state.job)}.",
        )


def _unplaced(state: GangState | None, replicas: tuple[Replica, ...]) -> Unplaced | None:
    if state is None:
        return None
    if state.gang.minimum > state.gang.members:
        return Unplaced(
            conditions.REASON_MIN_AVAILABLE,
            f"0 of {state.gang.members} placed: spec.runPolicy.schedulingPolicy.minAvailable is {state.gang.minimum},"
            f" and the job has {state.gang.members} pods: set it to {state.gang.members} or less",
        )
    if state.group is not None and not state.group.ready and all(replica.pod is None for replica in replicas):
        return Unplaced(
            conditions.REASON_GROUP_PENDING,
            f"0 of {state.gang.members} placed: pod group {state.group.name} waits for its queue",
            f": {state.group.says}" if state.group.says else "",
        )
    return None


def _not_acted_on(job: MXJob, *, is_local: bool) -> Iterator[Event]:
    """Yield the fields that only a gang scheduler acts on; scheduleTimeoutSeconds is the controller's own."""
    scheduling = job.spec.run_policy.scheduling_policy
    asked = {} if scheduling is None else msgspec.to_builtins(scheduling)
    why = "this cluster serves no gang scheduler that this controller uses (--gang-scheduling)"
    acted_on = {"scheduleTimeoutSeconds"}
    if is_local:
        acted_on |= {"minAvailable", "priorityClass"}
        why = "the local cluster has one queue, and goes by what the pods themselves request"
    if fields := sorted(set(asked) - acted_on):
        message = f"Without effect in spec.runPolicy.schedulingPolicy: {', '.join(fields)}, since {why}"
        yield Event("Warning", "UnsupportedField", message)
