"""A gang that holds a part of what it needs, and gets no more, gives back all of it.

A gang scheduler places the pods of a gang together at first and promises nothing later: another gang that waits may
take the room of a pod that went (kube-scheduler 1.36, measured). Two gangs that each hold a part wait for each other
for ever.
"""

from mxnet_operator.plan.actions import Effects, Reads
from mxnet_operator.plan.failures import Teardown, counted_restart
from mxnet_operator.plan.gang import observed_gang
from mxnet_operator.plan.placement import shortage
from mxnet_operator.plan.replicas import ReplicaState, restart_scope
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.times import left_of


def give_back(state: JobState) -> Teardown | Reads | Effects:
    """Tear down an incomplete gang that has waited long enough for the rest, which counts as no failure.

    A gang that holds nothing, has what it needs, or restarts pod by pod goes on.
    """
    job, replicas = state.job, state.replicas
    found = observed_gang(job, state.observed, state.rules)
    if found is None or restart_scope(job) != "Job":
        return Effects()
    waiting = [replica.pod for replica in replicas if replica.state is ReplicaState.WAITING and replica.pod is not None]
    unplaced = [pod for pod in waiting if not pod.is_placed]
    placed = [replica.pod for replica in replicas if replica.pod is not None and replica.pod.is_placed]
    if not placed or not unplaced or len(placed) >= found.gang.minimum or len(placed) + len(unplaced) < len(replicas):
        return Effects()
    times = (*(pod.placed_at for pod in placed), *(pod.created_at for pod in unplaced))
    since = max((time for time in times if time is not None), default=None)
    if left := left_of(state.policy.incomplete_gang, since, state.now):
        return Effects(requeue_after=left)
    if not state.observed.pods_listed:
        return Reads(pods="labelled")
    message = (
        f"mxjob {job.metadata.name} gives back the room that it holds, since no more has come for"
        f" {state.policy.incomplete_gang.seconds} s: {shortage(job, replicas)} {counted_restart(job)}."
    )
    return Teardown((), 0, message)
