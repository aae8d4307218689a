"""Decide what a job needs next: the one place that calls every policy, in their order."""

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan.actions import DeleteJob, DeletePod, Event, Plan, RestoreLabels, StopPod
from mxnet_operator.plan.attempt import pods_of_earlier_attempts
from mxnet_operator.plan.backoff import next_attempt
from mxnet_operator.plan.begun import is_begun
from mxnet_operator.plan.children import missing_children, outdated_children, pods_are_admitted
from mxnet_operator.plan.cleanup import clean_up
from mxnet_operator.plan.deadlines import next_deadline
from mxnet_operator.plan.deletion import delete_pod
from mxnet_operator.plan.failure import Failure
from mxnet_operator.plan.fixed_replicas import as_started, with_ignored_change
from mxnet_operator.plan.gang import has_gangs, observed_gang, scheduled_gang
from mxnet_operator.plan.gang_member import outdated_members
from mxnet_operator.plan.gang_priority import replaced_for_priority, with_ignored_priority, with_priority_class
from mxnet_operator.plan.gang_retry import time_until_touched, touched_groups
from mxnet_operator.plan.give_back import give_back, time_until_given_back
from mxnet_operator.plan.ignored_changes import ignored_events
from mxnet_operator.plan.lease import expired, kept_lease
from mxnet_operator.plan.notices import notices
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.page import recording_page, with_page
from mxnet_operator.plan.policy import DEFAULT, Policy
from mxnet_operator.plan.queue import (
    Standing,
    admission_events,
    admission_of,
    finish,
    placed,
    queue_of,
    report_ready,
    time_until_said,
    with_admission,
)
from mxnet_operator.plan.replicas import replicas_of
from mxnet_operator.plan.restart import Teardown, end_of_attempt
from mxnet_operator.plan.scheduler_grace import success_is_known
from mxnet_operator.plan.status import (
    failed_status,
    restarting_status,
    running_status,
    succeeded_status,
    time_to_record,
)
from mxnet_operator.plan.success import has_succeeded
from mxnet_operator.plan.suspend import suspend
from mxnet_operator.plan.terminating_pods import await_termination
from mxnet_operator.plan.topology import missing_pods
from mxnet_operator.plan.troubles import time_until_trouble, trouble_events
from mxnet_operator.plan.ttl import time_to_live
from mxnet_operator.plan.waits import soonest
from mxnet_operator.plan.workflow import READ_INTERVAL, deleted, goes_with_workflow

_AT_ONCE = timedelta(0)


class _Read(msgspec.Struct, frozen=True):
    """One job as written, with defaults, and as started."""

    asked: MXJob
    """Job as its user wrote it."""
    specified: MXJob
    """Job with defaults."""
    effective: MXJob
    """Job with defaults and the replicas it was started with: what runs."""


def plan(job: MXJob, observed: Observed, now: datetime, policy: Policy = DEFAULT) -> Plan:
    """Return what a valid job needs next, given its observed children; `now` is UTC.

    Pure: the same arguments give the same answer, and carrying an answer out twice does no harm.
    """
    located = with_page(job, policy)
    specified = with_defaults(located)
    read = _Read(located, specified, as_started(specified))
    observed, now = observed.owned_by(job.metadata.uid), now.replace(microsecond=0)
    decided = recording_page(job, located, _decide(read, observed, now, policy))
    left = _has_pods_left(read.effective, observed, decided, now)
    return msgspec.structs.replace(decided, job=read.effective, pods_left=left)


def _decide(read: _Read, observed: Observed, now: datetime, policy: Policy) -> Plan:
    job = read.asked
    if job.metadata.deletion_timestamp is not None:
        return Plan()
    if conditions.is_terminal(job.status):
        return _finished(read.effective, observed, now)
    if observed.workflow_over:
        return deleted(job, observed.workflow_over)
    lease, left = kept_lease(job), observed.lease_left
    is_expired = lease is not None and left is not None and left <= _AT_ONCE
    decided = _unfinished(read, observed, now, policy, expired(job, lease) if lease and is_expired else None)
    if is_expired:
        return decided
    workflow_in = READ_INTERVAL if goes_with_workflow(job) else None
    requeue_after = soonest(decided.requeue_after, workflow_in, left if lease is not None else None)
    return msgspec.structs.replace(decided, requeue_after=requeue_after)


def _unfinished(read: _Read, observed: Observed, now: datetime, policy: Policy, on_expiry: Plan | None) -> Plan:
    """Return what an unfinished job needs; `on_expiry` ends one whose lease has expired."""
    job = read.effective
    if unwatched := [pod for pod in observed.pods if not (pod.is_watched or pod.deleting)]:
        return Plan(actions=tuple(RestoreLabels(pod.name, pod.uid, pod.type, pod.index) for pod in unwatched))
    terminating = pods_of_earlier_attempts(job, observed)
    present = observed.without(terminating)
    replicas = replicas_of(job, present)
    ended = end_of_attempt(job, replicas, len(terminating))
    admission = admission_of(job, observed)
    deadline = next_deadline(job, replicas, terminating)
    is_over = deadline is not None and deadline.at <= now
    is_stopped = bool(ended or on_expiry or is_over) or admission.standing is Standing.WAITS
    if (is_stopped and success_is_known(job, replicas)) or (
        not isinstance(ended, Failure) and has_succeeded(job, replicas, now)
    ):
        return _with_status("Normal", succeeded_status(job, replicas, now), job.status)
    if on_expiry is not None:
        return on_expiry
    if isinstance(ended, Failure):
        return _with_status("Warning", failed_status(job, replicas, ended, now), job.status)
    if admission.standing is Standing.UNKNOWN:
        return Plan(requeue_after=admission.requeue_after)
    if admission.standing is Standing.WAITS:
        waits = suspend(job, observed, now, policy, admission)
        noticed = (
            notices(read.asked, has_gangs=has_gangs(observed), policy=policy)
            if queue_of(job) and not is_begun(job.status)
            else ()
        )
        return msgspec.structs.replace(waits, events=(*noticed, *waits.events))
    if isinstance(ended, Teardown):
        return _with_status("Warning", restarting_status(job, observed, ended, now), job.status)
    gang = observed_gang(job, observed)
    complete_in = time_until_given_back(job, gang, replicas, now, policy)
    if complete_in == _AT_ONCE:
        return _restarted(job, observed, give_back(job, replicas, policy), now)
    if (other_pods := replaced_for_priority(job, replicas, policy)) is not None:
        return _restarted(job, observed, other_pods, now)
    if deadline is not None and is_over:
        return _with_status("Warning", failed_status(job, replicas, deadline.failure, now), job.status)
    scheduled = scheduled_gang(job, observed, policy)
    status = running_status(job, replicas, now, scheduled)
    left = await_termination(status.conditions, terminating, observed.nodes, now, policy)
    reported = with_ignored_change(read.specified, with_admission(left.conditions, admission, now), now)
    reported = with_ignored_priority(reported, job, replicas, now, policy)
    status = msgspec.structs.replace(status, conditions=reported)
    record_in = time_to_record(job.status, status, replicas, now)
    begin = next_attempt(job, now, policy)
    waiting = begin is not None and begin > now
    gets_pods = not waiting and admission.standing is not Standing.HOLDS and pods_are_admitted(job, observed)
    return Plan(
        actions=(
            *(delete_pod(pod) for pod in terminating if not pod.deleting),
            *left.deletions,
            *outdated_children(job, observed),
            *missing_children(job, observed),
            *touched_groups(job, present, now),
            *admission.actions,
            *report_ready(observed, now, ready=conditions.is_true(reported, conditions.RUNNING)),
            *outdated_members(job, present.pods, policy),
            *(
                with_priority_class(job, placed(admission, missing_pods(job, replicas, terminating)), policy)
                if gets_pods
                else ()
            ),
        ),
        status=status if record_in == _AT_ONCE else None,
        events=(
            *(() if is_begun(job.status) else notices(read.asked, has_gangs=has_gangs(observed), policy=policy)),
            *left.events,
            *trouble_events(job.status.conditions, reported),
            *admission_events(job.status.conditions, reported),
            *ignored_events(left.conditions, reported),
        ),
        requeue_after=soonest(
            record_in if record_in != _AT_ONCE else None,
            begin - now if begin is not None and waiting else None,
            deadline.at - now if deadline is not None else None,
            left.requeue_after,
            complete_in,
            admission.requeue_after,
            time_until_said(reported, admission, now),
            time_until_touched(job, present, now),
            time_until_trouble(reported, job, replicas, now, scheduled),
        ),
    )


def _restarted(job: MXJob, observed: Observed, teardown: Teardown, now: datetime) -> Plan:
    """Return the plan that restarts a job of which nothing has failed."""
    restart = _with_status("Warning", restarting_status(job, observed, teardown, now), job.status)
    return msgspec.structs.replace(restart, gives_back=True)


def _finished(job: MXJob, observed: Observed, now: datetime) -> Plan:
    left = time_to_live(job, now)
    if left is not None and left <= _AT_ONCE:
        return Plan(actions=(DeleteJob(job.metadata.name, job.metadata.uid),))
    actions = (*clean_up(job, observed), *finish(job, observed, now))
    return Plan(actions=actions, status=_with_state(job.status), requeue_after=left)


def _has_pods_left(job: MXJob, observed: Observed, decided: Plan, now: datetime) -> bool:
    """Return whether pods of a job that is finished, or that this plan finishes, still exist and are to be deleted."""
    actions = decided.actions
    if decided.status is not None and conditions.is_terminal(decided.status):
        actions = _finished(msgspec.structs.replace(job, status=decided.status), observed, now).actions
    return any(isinstance(action, DeletePod | StopPod) for action in actions) or any(
        pod.deleting for pod in observed.pods
    )


def _with_state(status: MXJobStatus) -> MXJobStatus | None:
    """Return the status of a job that training-operator 1.8.1 finished, with the state that `kubectl get` shows."""
    return None if status.state else msgspec.structs.replace(status, state=conditions.state_of(status.conditions))


def _with_status(event_type: Literal["Normal", "Warning"], status: MXJobStatus, before: MXJobStatus) -> Plan:
    """Return a plan that only writes the status and posts its newest condition as an Event."""
    newest = status.conditions[-1]
    troubles = trouble_events(before.conditions, status.conditions)
    return Plan(status=status, events=(*troubles, Event(event_type, newest.reason, newest.message)))
