"""A gang that holds a part of what it needs, and gets no more, gives back all of it.

A gang scheduler places the pods of a gang together at first and promises nothing later: another gang that waits may
take the room of a pod that went (kube-scheduler 1.36, measured). Two gangs that each hold a part wait for each other
for ever.
"""

from datetime import datetime, timedelta

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.attempt import restart_scope
from mxnet_operator.plan.gang import GangState
from mxnet_operator.plan.policy import DEFAULT, Policy
from mxnet_operator.plan.replicas import Outcome, Replica
from mxnet_operator.plan.restart import Teardown, counted_restart
from mxnet_operator.plan.shortage import shortage
from mxnet_operator.plan.waits import left_of


def time_until_given_back(
    job: MXJob, state: GangState | None, replicas: tuple[Replica, ...], now: datetime, policy: Policy = DEFAULT
) -> timedelta | None:
    """Return how long an incomplete gang of a job with defaults still waits for the rest; zero once it gives all back.

    None where it holds nothing, has what it needs, or restarts pod by pod.
    """
    if state is None or restart_scope(job) != "Job":
        return None
    waiting = [replica.pod for replica in replicas if replica.outcome is Outcome.WAITING and replica.pod is not None]
    unplaced = [pod for pod in waiting if not pod.is_placed]
    placed = [replica.pod for replica in replicas if replica.pod is not None and replica.pod.is_placed]
    if not placed or not unplaced or len(placed) >= state.gang.minimum or len(placed) + len(unplaced) < len(replicas):
        return None
    times = (*(pod.placed_at for pod in placed), *(pod.created_at for pod in unplaced))
    since = max((time for time in times if time is not None), default=None)
    return left_of(policy.incomplete_gang, since, now)


def give_back(job: MXJob, replicas: tuple[Replica, ...], policy: Policy = DEFAULT) -> Teardown:
    """Tear down an incomplete gang, which counts as no failure."""
    return Teardown(
        (),
        0,
        f"mxjob {job.metadata.name} gives back the room that it holds, since no more has come for"
        f" {policy.incomplete_gang.seconds} s: {shortage(job, replicas)} {counted_restart(job)}.",
    )
