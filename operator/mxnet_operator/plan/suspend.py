"""Suspension: a suspended job keeps no pods, no Services and no startTime, and starts again when resumed.

It says Suspended only once its pods are gone, since then its quota is free (Kueue relies on that).
"""

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Action, Plan
from mxnet_operator.plan.attempt import given_up, pods_of_earlier_attempts, restart_scope
from mxnet_operator.plan.children import child_deletions
from mxnet_operator.plan.deletion import delete_pod
from mxnet_operator.plan.ignored_changes import all_followed
from mxnet_operator.plan.integration import JobState, Policies, fold
from mxnet_operator.plan.joining import all_have_existed
from mxnet_operator.plan.policy import DEFAULT, Policy
from mxnet_operator.plan.ready import ready, replicas_in
from mxnet_operator.plan.terminating_pods import await_termination
from mxnet_operator.plan.waits import soonest


def suspend(state: JobState, policy: Policy = DEFAULT, integrations: Policies = ()) -> Plan:
    """Return what an unfinished job needs whose `suspend` is true or that waits in a queue.

    First the attempt is raised, so that no later reconciliation takes the deleted pods for lost ones; then they are
    deleted. Only once they have gone the job's quota goes back to its queue.
    """
    job, observed, now = state.job, state.observed, state.now
    name, status = job.metadata.name, job.status
    reason = conditions.reason(conditions.SUSPENDED)
    terminating = {pod.uid for pod in pods_of_earlier_attempts(job, observed)}
    present = tuple(pod for pod in observed.pods if pod.uid not in terminating)
    if present or _has_run(job):
        current = conditions.set_false(
            status.conditions, conditions.RUNNING, reason, f"{name} is being suspended.", now
        )
        effects = fold(integrations, current, lambda each, so_far: each.waiting(state, so_far, has_pods=True))
        raised = given_up(job)
        new_state = conditions.state_of(effects.conditions)
        return Plan(
            status=msgspec.structs.replace(raised, conditions=effects.conditions, state=new_state),
            events=effects.events,
        )
    pods = (delete_pod(pod) for pod in observed.pods if not pod.deleting)
    deletions: tuple[Action, ...] = (*pods, *child_deletions(observed))
    left = await_termination(status.conditions, observed.pods, observed.nodes, now, policy)
    status = msgspec.structs.replace(status, conditions=left.conditions)
    if observed.pods:
        return Plan(
            actions=(*deletions, *left.deletions),
            status=status if left.conditions != job.status.conditions else None,
            events=left.events,
            requeue_after=left.requeue_after,
        )
    message = f"{names.KIND} {name} {state.admission.waits or 'is suspended'}."
    current = conditions.created(status.conditions, name, now)
    effects = fold(integrations, current, lambda each, so_far: each.waiting(state, so_far, has_pods=False))
    actions, current = (*deletions, *effects.actions), effects.conditions
    current = conditions.set_false(current, conditions.RESTARTING, reason, message, now)
    current = conditions.set_condition(current, conditions.SUSPENDED, reason, message, now)
    current = all_followed(current, now)
    again = soonest(state.admission.requeue_after, effects.requeue_after)
    is_told = bool(status.state) and status.start_time is None and not status.started_replicas
    if current == job.status.conditions and is_told and status.first_attempt == status.restarts:
        return Plan(actions=actions, requeue_after=again)
    suspended = msgspec.structs.replace(
        status,
        conditions=current,
        state=conditions.state_of(current),
        ready=ready(0, replicas_in(job)),
        replica_statuses={},
        first_attempt=status.restarts,
        restarting_pods=(),
        started_replicas={},
        started_scope="",
        start_time=None,
    )
    return Plan(actions=actions, status=suspended, events=effects.events, requeue_after=again)


def _has_run(job: MXJob) -> bool:
    """Return whether the attempt has begun, even if its pods are gone: a resumed job would take them for lost."""
    status = job.status
    gang_has_ended = bool(status.completed_indexes) and restart_scope(job) == "Job"
    return gang_has_ended or all_have_existed(job, ()) or conditions.is_true(status.conditions, conditions.RUNNING)
