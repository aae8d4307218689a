"""Decide what a job needs next: an ordered table of policies, and the fold of what each answers."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import (
    ChangeChild,
    CreatePod,
    DeleteChild,
    Effects,
    Event,
    Failure,
    Reads,
    RestoreLabels,
    Success,
    Teardown,
)
from mxnet_operator.plan.children import SERVICES, Rules, missing_children, outdated_children, pods_are_admitted
from mxnet_operator.plan.deadlines import deadlines
from mxnet_operator.plan.failures import next_attempt, restarting_status
from mxnet_operator.plan.fewer_workers import fewer_workers
from mxnet_operator.plan.finished import finished, pods_are_left
from mxnet_operator.plan.integration import IntegrationPolicy, fold
from mxnet_operator.plan.lease import expired, kept_lease
from mxnet_operator.plan.notices import noticed
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.placement import placement
from mxnet_operator.plan.replicas import is_begun, last_created, missing_pods, replicas_in
from mxnet_operator.plan.started import effective_job
from mxnet_operator.plan.starting import starting, unknown_ends
from mxnet_operator.plan.state import AdmissionState, JobState, state_of
from mxnet_operator.plan.status import ended_status, recording_page, running_status, time_to_record, with_page
from mxnet_operator.plan.success import early_exits, scheduler_grace, success, success_is_known
from mxnet_operator.plan.suspend import ignored_changes, suspension
from mxnet_operator.plan.terminating_pods import terminating_pods
from mxnet_operator.plan.times import DEFAULT, Policy

_AT_ONCE: Final = timedelta(0)
_OUTDATED: Final = timedelta(seconds=1)
"""Requeue delay of a job of which the server has a newer version, whose event is on the way."""
_STATES: Final = frozenset({conditions.FAILED, conditions.SUCCEEDED, conditions.SUSPENDED})

Answer = Reads | Effects | Failure | Success | Teardown
"""Answer of a policy: what it must know first, its effects, or how the attempt ends."""


def plan(
    job: MXJob,
    observed: Observed,
    now: datetime,
    policy: Policy = DEFAULT,
    rules: Rules = (SERVICES,),
    *,
    integrations: tuple[IntegrationPolicy, ...] = (),
) -> Reads | Effects:
    """Return what a valid job needs next, given its observed children, or what must be read before; `now` is UTC.

    `rules` are those of the kinds of children that the server serves, `integrations` are asked in their order. Pure:
    the same arguments give the same answer, and carrying an answer out twice does no harm.
    """
    asked = with_page(job, policy)
    observed, now = observed.owned_by(job.metadata.uid), now.replace(microsecond=0)
    if job.metadata.deletion_timestamp is not None:
        effective, answer = effective_job(asked), Effects()
    elif conditions.is_terminal(job.status):
        effective = effective_job(asked)
        answer = finished(effective, observed, rules, now, integrations)
    else:
        if may_have_unlabelled_pods(job) and observed.pods_listed != "owned":
            return Reads(pods="owned")
        state = state_of(asked, observed, now, policy, rules, integrations=integrations)
        effective, found = state.job, _unfinished(state)
        if isinstance(found, Reads):
            return found
        answer = found
    answer = recording_page(job, asked, answer)
    return _reads_before(effective, observed, answer) or _with_outcome(effective, observed, answer, rules, now)


def may_have_unlabelled_pods(job: MXJob) -> bool:
    """Return whether an operator before this one began the job: its pods may lack our labels."""
    status = job.status
    has_begun = is_begun(status) and status.state != conditions.SUSPENDED and not conditions.is_terminal(status)
    return has_begun and not status.started_replicas


def _unfinished(state: JobState) -> Reads | Effects:
    """Return what the policies decide together, or the first one that decides alone."""
    parent = _parent_check(state)
    folded = Effects()
    for policy in POLICIES:
        answer = policy(state)
        if isinstance(answer, Reads):
            return answer
        if not isinstance(answer, Effects):
            return _at_the_end(state, answer, folded, parent)
        if answer.is_final:
            return msgspec.structs.replace(answer, requeue_after=(answer + parent).requeue_after)
        folded += answer
    status = running_status(state, folded.reports, folded.training)
    record_in = time_to_record(state.job.status, status, state.replicas, state.now)
    if record_in == _AT_ONCE:
        return msgspec.structs.replace(folded + parent, reports=(), status=status)
    return msgspec.structs.replace(folded + parent + Effects(requeue_after=record_in), reports=())


def _at_the_end(state: JobState, end: Failure | Success | Teardown, folded: Effects, parent: Effects) -> Effects:
    """Return the effects of the end of an attempt, or of the job, which keeps what was reported of its pods."""
    if success_is_known(state):
        end = Success()
    if isinstance(end, Teardown):
        folded, status = Effects(), restarting_status(state.job, state.observed, end, state.now)
    else:
        status = ended_status(state, folded.reports, end)
    newest = status.conditions[-1]
    event_type: Literal["Normal", "Warning"] = "Normal" if isinstance(end, Success) else "Warning"
    event = Event(event_type, newest.reason, newest.message)
    return msgspec.structs.replace(parent, status=status, events=(*folded.events, event))


def _parent_check(state: JobState) -> Effects:
    """Return when to check again on what the job goes with, whatever is decided for it: a workflow, a lease."""
    left, checked = state.observed.lease_left, fold(state, lambda each: each.follow_parent(state))
    kept_for = left if left is not None and left > _AT_ONCE and kept_lease(state.asked) is not None else None
    return Effects(requeue_after=None if checked.is_final else checked.requeue_after) + Effects(requeue_after=kept_for)


def _ends_with_another(state: JobState) -> Effects:
    checked = fold(state, lambda each: each.follow_parent(state))
    return checked if checked.is_final else Effects()


def _lease_expired(state: JobState) -> Effects | Success:
    lease, left = kept_lease(state.asked), state.observed.lease_left
    if lease is None or left is None or left > _AT_ONCE:
        return Effects()
    return Success() if success_is_known(state) else msgspec.structs.replace(expired(state.asked, lease), is_final=True)


def _stopped(state: JobState) -> Effects | Failure:
    """Return the failure of a job that its user stopped, as by `mxjob stop`."""
    if state.asked.metadata.annotations.get(names.STOP_ANNOTATION) != "true":
        return Effects()
    return Failure(f"Job {state.asked.metadata.name} has failed because it was stopped")


def _taken_over(state: JobState) -> Effects:
    """Give the pods of an older operator our labels before anything else: from then on the watch shows them."""
    pods = [pod for pod in state.observed.pods if not (pod.is_watched or pod.deleting)]
    labels = tuple(RestoreLabels(pod.name, pod.uid, pod.type, pod.index) for pod in pods)
    return Effects(actions=labels, is_final=bool(labels))


def _failures(state: JobState) -> Failure | Effects:
    """Return the job's failure, if failed replicas are final."""
    return state.attempt_end if isinstance(state.attempt_end, Failure) else Effects()


def _restarts(state: JobState) -> Teardown | Effects:
    """Return the teardown of an attempt of which replicas have failed that are not final."""
    return state.attempt_end if isinstance(state.attempt_end, Teardown) else Effects()


def _children(state: JobState) -> Effects:
    job, observed, rules = state.job, state.observed, state.rules
    return Effects(actions=(*outdated_children(job, observed, rules), *missing_children(job, observed, rules)))


def _ends(state: JobState) -> Answer:
    """End an attempt of which nothing has failed, where an integration asks for that."""
    folded = Effects()
    for each in state.integrations:
        answer = each.end(state)
        if not isinstance(answer, Effects):
            return answer
        folded += answer
    return folded


def _integrations(state: JobState) -> Effects:
    asked = fold(state, lambda each: each.running(state))
    return asked + Effects(requeue_after=state.admission.requeue_after)


def _missing_pods(state: JobState) -> Effects:
    """Create missing pods, once the back-off of a restart is over and the job's admission and children allow."""
    job = state.job
    begin = next_attempt(job, state.now, state.policy)
    if begin is not None and begin > state.now:
        return Effects(requeue_after=begin - state.now)
    if state.admission.state is AdmissionState.HOLDS or not pods_are_admitted(job, state.observed, state.rules):
        return Effects()
    creations = missing_pods(job, state.replicas, state.terminating)
    for each in state.integrations:
        creations = each.creations(state, creations)
    return Effects(actions=creations)


POLICIES: Final[tuple[Callable[[JobState], Answer], ...]] = (
    _ends_with_another,
    _taken_over,
    _stopped,
    placement,
    starting,
    early_exits,
    scheduler_grace,
    unknown_ends,
    success,
    _lease_expired,
    _failures,
    suspension,
    _restarts,
    fewer_workers,
    _ends,
    deadlines,
    noticed,
    terminating_pods,
    ignored_changes,
    _children,
    _integrations,
    _missing_pods,
)
"""Policies of an unfinished job, in their order: one that decides alone keeps those after it from being asked."""


def _reads_before(job: MXJob, observed: Observed, effects: Effects) -> Reads | Effects | None:
    """Return what to read before the effects, which would be wrong if a cache lagged behind; None where nothing."""
    changes = [action for action in effects.actions if isinstance(action, ChangeChild | DeleteChild)]
    frees = any(action.needs_fresh_pods for action in changes)  # By word of an object that pods may lag behind.
    if not observed.pods_listed and (frees or (observed.pods_lag and _relies_on_absence(job, effects))):
        return Reads(pods="labelled")
    if not _relies_on_record(job, effects) or observed.job_is_newest:
        return None
    return Reads(newest_job=True) if observed.job_is_newest is None else Effects(requeue_after=_OUTDATED)


def _relies_on_absence(job: MXJob, effects: Effects) -> bool:
    """Return whether effects would be wrong if the job had pods that weren't observed."""
    if any(isinstance(action, CreatePod) and action.attempt > 0 for action in effects.actions):
        return True
    status = effects.status
    return status is not None and (status.state in _STATES or status.restarts > job.status.restarts)


def _relies_on_record(job: MXJob, effects: Effects) -> bool:
    """Return whether effects would be wrong if the cached job were out of date.

    Where they create members of a gang: once pods of a gang have been deleted, only the status records that all of them
    existed, and until the status records with which restartScope several replicas were started, an edit can make them a
    gang. And where they take the job from its queue, or have it ask for something else there: a suspension may have
    ended since, and an edit have been taken back.
    """
    actions = effects.actions
    if any(isinstance(action, ChangeChild | DeleteChild) and action.needs_newest_job for action in actions):
        return True
    if not any(isinstance(action, CreatePod) for action in actions):
        return False
    return last_created(job) is not None or (replicas_in(job) > 1 and not job.status.started_replicas)


def _with_outcome(job: MXJob, observed: Observed, effects: Effects, rules: Rules, now: datetime) -> Effects:
    """Return effects with the job that they are for, and whether pods of it are left that are to be deleted."""
    actions: tuple[object, ...] = effects.actions
    if effects.status is not None and conditions.is_terminal(effects.status):
        actions = finished(msgspec.structs.replace(job, status=effects.status), observed, rules, now, ()).actions
    return msgspec.structs.replace(effects, job=job, pods_left=pods_are_left(actions, observed))
