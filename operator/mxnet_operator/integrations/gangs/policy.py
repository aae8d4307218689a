"""Decisions about a gang: it starts whole, and one that holds a part of its nodes and gets no more gives all back.

A gang scheduler places the pods of a gang together at first and promises nothing later: another gang that waits may
take the room of a pod that went (kube-scheduler 1.36, measured). Two gangs that each hold a part wait for each other
for ever.
"""

from collections.abc import Iterator
from datetime import timedelta

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.pod_additions import PodAdditions
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.gangs.gang import Gang, PodGroupView, gang_of, has_gangs
from mxnet_operator.integrations.gangs.local import gang_member, outdated_members
from mxnet_operator.integrations.gangs.retry import touched_groups
from mxnet_operator.plan.actions import CreatePod, Effects, Event, Reads, Teardown
from mxnet_operator.plan.failures import counted_restart
from mxnet_operator.plan.fewer_workers import min_available
from mxnet_operator.plan.integration import IntegrationPolicy, Unplaced
from mxnet_operator.plan.placement import shortage
from mxnet_operator.plan.replicas import Replica, ReplicaState, restart_scope
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.times import left_of


class GangPolicy(IntegrationPolicy):
    """Decisions about jobs whose pods are placed at once or not at all."""

    def __init__(self, *, is_local: bool = False, incomplete: timedelta = timedelta(minutes=1)) -> None:
        """Create a policy; `is_local` where the scheduler is the local cluster's, which goes by the pods' annotations.

        `incomplete` is how long a gang keeps the nodes of a part of its pods while there are none for the rest.
        """
        self.is_local, self.incomplete = is_local, incomplete

    def unplaced(self, state: JobState) -> Unplaced | None:
        """Return what keeps a whole gang from being scheduled."""
        gang = gang_of(state.job) if self.is_local or has_gangs(state.rules) else None
        groups = (child for child in state.observed.children if isinstance(child, PodGroupView))
        return None if gang is None else _unplaced(gang, next(groups, None), state.replicas)

    def end(self, state: JobState) -> Teardown | Reads | Effects:
        """Tear down an incomplete gang that has waited long enough for the rest, which counts as no failure.

        A gang that holds nothing, has what it needs, or restarts pod by pod goes on.
        """
        job, replicas = state.job, state.replicas
        if not has_gangs(state.rules) or gang_of(job) is None or restart_scope(job) != "Job":
            return Effects()
        waiting = [each.pod for each in replicas if each.state is ReplicaState.WAITING and each.pod is not None]
        unplaced = [pod for pod in waiting if not pod.is_placed]
        placed = [each.pod for each in replicas if each.pod is not None and each.pod.is_placed]
        is_whole = len(placed) >= min_available(job) or len(placed) + len(unplaced) < len(replicas)
        if not placed or not unplaced or is_whole:
            return Effects()
        times = (*(pod.placed_at for pod in placed), *(pod.created_at for pod in unplaced))
        since = max((time for time in times if time is not None), default=None)
        if left := left_of(self.incomplete, since, state.now):
            return Effects(requeue_after=left)
        if not state.observed.pods_listed:
            return Reads(pods="labelled")
        message = (
            f"mxjob {job.metadata.name} gives back the room that it holds, since no more has come for"
            f" {self.incomplete.seconds} s: {shortage(job, replicas)} {counted_restart(job)}."
        )
        return Teardown((), 0, message)

    def notices(self, state: JobState) -> Iterator[Event]:
        """Yield a Warning about the fields of schedulingPolicy that nothing acts on."""
        return iter(()) if has_gangs(state.rules) else _not_acted_on(state.asked, is_local=self.is_local)

    def running(self, state: JobState) -> Effects:
        """Keep the gang's marks up to date, and have its scheduler try it again."""
        members = outdated_members(state.job, state.present.pods) if self.is_local else ()
        return touched_groups(state) + Effects(actions=members)

    def creations(self, state: JobState, pods: tuple[CreatePod, ...]) -> tuple[CreatePod, ...]:
        """Add the annotations by which the local cluster's scheduler goes."""
        return tuple(_with_marks(state, each) for each in pods)


def _with_marks(state: JobState, pod: CreatePod) -> CreatePod:
    marks = PodAdditions(annotations=((names.GANG_MEMBER_ANNOTATION, gang_member(state.job, pod.attempt)),))
    return msgspec.structs.replace(pod, additions=(*pod.additions, marks))


def _unplaced(gang: Gang, group: PodGroupView | None, replicas: tuple[Replica, ...]) -> Unplaced | None:
    if gang.minimum > gang.members:
        return Unplaced(
            conditions.REASON_MIN_AVAILABLE,
            f"0 of {gang.members} placed: spec.runPolicy.schedulingPolicy.minAvailable is {gang.minimum},"
            f" and the job has {gang.members} pods: set it to {gang.members} or less",
        )
    if group is not None and not group.ready and all(replica.pod is None for replica in replicas):
        return Unplaced(
            conditions.REASON_GROUP_PENDING,
            f"0 of {gang.members} placed: pod group {group.name} waits for its queue",
            f": {group.says}" if group.says else "",
        )
    return None


def _not_acted_on(job: MXJob, *, is_local: bool) -> Iterator[Event]:
    """Yield the fields that only a gang scheduler acts on; scheduleTimeoutSeconds is the controller's own."""
    scheduling = job.spec.run_policy.scheduling_policy
    asked = {} if scheduling is None else msgspec.to_builtins(scheduling)
    why = "this cluster serves no gang scheduler that this controller uses (--gang-scheduling)"
    acted_on = {"scheduleTimeoutSeconds"}
    if is_local:
        acted_on |= {"minAvailable"}
        why = "the local cluster has one queue, by age, and goes by what the pods themselves request"
    if fields := sorted(set(asked) - acted_on):
        message = f"Without effect in spec.runPolicy.schedulingPolicy: {', '.join(fields)}, since {why}"
        yield Event("Warning", "UnsupportedField", message)
