"""Suspension: a suspended job keeps no pods, no Services and no startTime, and starts again when resumed.

It says Suspended only once its pods are gone, since then its quota is free (Kueue relies on that). A change that a
running job can't follow takes effect then: until it was suspended, a condition says so.
"""

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Action, Effects, Reads, Success
from mxnet_operator.plan.children import child_deletions
from mxnet_operator.plan.failures import given_up
from mxnet_operator.plan.integration import fold
from mxnet_operator.plan.notices import noticed
from mxnet_operator.plan.replicas import all_have_existed, replicas_in, restart_scope
from mxnet_operator.plan.started import changed_replicas
from mxnet_operator.plan.state import AdmissionState, JobState
from mxnet_operator.plan.status import with_reports
from mxnet_operator.plan.success import success_is_known
from mxnet_operator.plan.terminating_pods import await_termination, delete_pod

_OF_A_RUN = (conditions.REPLICAS_CHANGE_IGNORED, conditions.FEWER_WORKERS)


def suspension(state: JobState) -> Reads | Effects | Success:
    """Return what a job needs whose `suspend` is true or that waits in a queue; nothing for one that may run."""
    admission = state.admission
    if admission.state is AdmissionState.UNKNOWN:
        return Effects(requeue_after=admission.requeue_after, is_final=True)
    if admission.state is not AdmissionState.WAITS:
        return Effects()
    if success_is_known(state):
        return Success()
    waits = _suspended(state)
    if isinstance(waits, Reads):
        return waits
    return msgspec.structs.replace(waits, events=(*noticed(state).events, *waits.events))


def ignored_changes(state: JobState) -> Effects:
    """Report ReplicasChangeIgnored: True while the spec asks for another job than the one that runs."""
    message = changed_replicas(state.specified)
    if not message:
        return _in_sync(state, conditions.REPLICAS_CHANGE_IGNORED)
    reason = conditions.REASON_NOT_SUSPENDED
    return state.warn(conditions.REPLICAS_CHANGE_IGNORED, reason, message, again="if changed")


def _suspended(state: JobState) -> Reads | Effects:
    """Return what a job needs that is to have no pods.

    First the attempt is raised, so that no later reconciliation takes the deleted pods for lost ones; then they are
    deleted. Only once they have gone the job's quota goes back to its queue.
    """
    job, observed, admission, now = state.job, state.observed, state.admission, state.now
    name, status = job.metadata.name, job.status
    reason = conditions.reason(conditions.SUSPENDED)
    goes_on = bool(state.present.pods) or _has_run(job)
    reported = fold(state, lambda each: each.waiting(state, has_pods=goes_on))
    if goes_on:
        message = f"{name} is being suspended."
        current = conditions.set_false(status.conditions, conditions.RUNNING, reason, message, now)
        current = with_reports(current, reported.reports, now)
        raised = msgspec.structs.replace(given_up(job), conditions=current, state=conditions.state_of(current))
        return Effects(status=raised, events=reported.events, is_final=True)
    left = await_termination(state, observed.pods)
    if isinstance(left, Reads):
        return left
    pods = (delete_pod(pod) for pod in observed.pods if not pod.deleting)
    deletions: tuple[Action, ...] = (*pods, *child_deletions(observed, state.rules))
    current = with_reports(status.conditions, left.reports, now)
    if observed.pods:
        changed = msgspec.structs.replace(status, conditions=current) if current != status.conditions else None
        actions = (*deletions, *left.actions)
        return msgspec.structs.replace(left, actions=actions, status=changed, reports=(), is_final=True)
    message = f"{names.KIND} {name} {admission.waits or 'is suspended'}."
    current = with_reports(conditions.created(current, name, now), reported.reports, now)
    current = conditions.set_false(current, conditions.RESTARTING, reason, message, now)
    current = conditions.set_condition(current, conditions.SUSPENDED, reason, message, now)
    for condition_type in _OF_A_RUN:
        current = with_reports(current, _in_sync(state, condition_type).reports, now)
    effects = Effects(actions=deletions, requeue_after=admission.requeue_after) + reported
    effects = msgspec.structs.replace(effects, reports=(), is_final=True)
    is_told = bool(status.state) and status.start_time is None and not status.started_replicas
    if current == status.conditions and is_told and status.first_attempt == status.restarts:
        return effects
    suspended = msgspec.structs.replace(
        status,
        conditions=current,
        state=conditions.state_of(current),
        ready=f"0/{replicas_in(job)}",
        replica_statuses={},
        first_attempt=status.restarts,
        restarting_pods=(),
        started_replicas={},
        fewer_replicas={},
        started_scope="",
        start_time=None,
    )
    return msgspec.structs.replace(effects, status=suspended)


def _in_sync(state: JobState, condition_type: str) -> Effects:
    return state.no_longer(condition_type, conditions.REASON_SPEC_IN_SYNC, "The job runs as specified.")


def _has_run(job: MXJob) -> bool:
    """Return whether the attempt has begun, even if its pods are gone: a resumed job would take them for lost."""
    status = job.status
    gang_has_ended = bool(status.completed_indexes) and restart_scope(job) == "Job"
    return gang_has_ended or all_have_existed(job, ()) or conditions.is_true(status.conditions, conditions.RUNNING)
