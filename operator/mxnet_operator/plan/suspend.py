"""What a suspended job keeps and gives up: no pods, no Services, no startTime; and how it begins again.

It says Suspended only once its pods are gone, since then its quota is free (Kueue relies on that).
"""

from datetime import datetime

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Action, Plan
from mxnet_operator.plan.attempt import outgoing, restart_scope, torn_down
from mxnet_operator.plan.children import child_deletions
from mxnet_operator.plan.deletion import delete_pod
from mxnet_operator.plan.elastic import without_ignored_change
from mxnet_operator.plan.joining import all_have_existed
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.policy import DEFAULT, Policy
from mxnet_operator.plan.ready import ready, replicas_in
from mxnet_operator.plan.stuck import left_behind


def suspend(job: MXJob, observed: Observed, now: datetime, policy: Policy = DEFAULT) -> Plan:
    """What to do next with a job that is not over and whose `suspend` is true.

    First the attempt is raised, so that no later look takes the deleted pods for lost ones; then they are deleted.
    """
    name, status = job.metadata.name, job.status
    reason = conditions.reason(conditions.SUSPENDED)
    going = {pod.uid for pod in outgoing(job, observed)}
    present = tuple(pod for pod in observed.pods if pod.uid not in going)
    if present or _has_run(job):
        current = conditions.set_false(
            status.conditions, conditions.RUNNING, reason, f"{name} is being suspended.", now
        )
        raised = torn_down(job, observed, present, failures=0)
        return Plan(status=msgspec.structs.replace(raised, conditions=current, state=conditions.state_of(current)))
    pods = (delete_pod(pod) for pod in observed.pods if not pod.deleting)
    deletions: tuple[Action, ...] = (*pods, *child_deletions(observed))
    left = left_behind(status.conditions, observed.pods, observed.nodes, now, policy)
    status = msgspec.structs.replace(status, conditions=left.conditions)
    if observed.pods:
        return Plan(
            actions=(*deletions, *left.deletions),
            status=status if left.conditions != job.status.conditions else None,
            events=left.events,
            requeue_after=left.look_again,
        )
    message = f"{names.KIND} {name} is suspended."
    current = conditions.created(status.conditions, name, now)
    current = conditions.set_false(current, conditions.RESTARTING, reason, message, now)
    current = conditions.set_condition(current, conditions.SUSPENDED, reason, message, now)
    current = without_ignored_change(current, now)
    if current == job.status.conditions and status.state and status.start_time is None and not status.started_replicas:
        return Plan(actions=deletions)
    suspended = msgspec.structs.replace(
        status,
        conditions=current,
        state=conditions.state_of(current),
        ready=ready(0, replicas_in(job)),
        replica_statuses={},
        restarting_pods=(),
        started_replicas={},
        started_scope="",
        start_time=None,
    )
    return Plan(actions=deletions, status=suspended)


def _has_run(job: MXJob) -> bool:
    """Whether the attempt has begun, be all its pods gone: unless it is over, a resumed job would miss them."""
    status = job.status
    gang_has_ended = bool(status.completed_indexes) and restart_scope(job) == "Job"
    return gang_has_ended or all_have_existed(job, ()) or conditions.is_true(status.conditions, conditions.RUNNING)
