"""The order in which the policies are asked: the one place that sees all of them."""

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import Condition, MXJob, MXJobStatus
from mxnet_operator.plan.actions import Action, DeleteJob, DeletePod, Event, Plan, StopPod
from mxnet_operator.plan.attempt import outgoing
from mxnet_operator.plan.backoff import next_attempt
from mxnet_operator.plan.children import missing_children
from mxnet_operator.plan.cleanup import clean_up
from mxnet_operator.plan.deadlines import next_deadline
from mxnet_operator.plan.deletion import delete_pod
from mxnet_operator.plan.elastic import as_started, with_ignored_change
from mxnet_operator.plan.failure import Failure
from mxnet_operator.plan.labels import restored, unwatched_in
from mxnet_operator.plan.labels import told as labels_told
from mxnet_operator.plan.lease import expired, kept_lease
from mxnet_operator.plan.notices import notices
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.policy import DEFAULT, Policy
from mxnet_operator.plan.replicas import replicas_of
from mxnet_operator.plan.restart import Teardown, judge
from mxnet_operator.plan.status import (
    failed_status,
    restarting_status,
    running_status,
    succeeded_status,
    time_to_record,
)
from mxnet_operator.plan.stuck import left_behind
from mxnet_operator.plan.success import has_succeeded
from mxnet_operator.plan.suspend import suspend
from mxnet_operator.plan.topology import missing_pods
from mxnet_operator.plan.troubles import time_until_trouble, trouble_events
from mxnet_operator.plan.ttl import time_to_live
from mxnet_operator.plan.workflow import ASK_AGAIN, deleted, goes_with_workflow

_AT_ONCE = timedelta(0)


class _Read(msgspec.Struct, frozen=True):
    """A job in three readings."""

    asked: MXJob
    """As its user wrote it."""
    specified: MXJob
    """With its defaults."""
    effective: MXJob
    """With its defaults, and as it was started: what runs."""


def plan(job: MXJob, observed: Observed, now: datetime, policy: Policy = DEFAULT) -> Plan:
    """What to do next with a valid job, given its children as observed; `now` is UTC.

    Pure: the same arguments give the same answer, and carrying an answer out twice does no harm.
    """
    specified = with_defaults(job)
    read = _Read(job, specified, as_started(specified))
    observed, now = observed.owned_by(job.metadata.uid), now.replace(microsecond=0)
    decided = _decide(read, observed, now, policy)
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
    if lease is not None and left is not None and left <= _AT_ONCE:
        return expired(job, lease)
    decided = _unfinished(read, observed, now, policy)
    workflow_in = ASK_AGAIN if goes_with_workflow(job) else None
    soonest = _soonest(
        decided.requeue_after, workflow_in, left if lease is not None else None, unwatched_in(observed.pods)
    )
    return msgspec.structs.replace(decided, requeue_after=soonest)


def _unfinished(read: _Read, observed: Observed, now: datetime, policy: Policy) -> Plan:
    job = read.effective
    going = outgoing(job, observed)
    present = observed.without(going)
    replicas = replicas_of(job, present)
    verdict = judge(job, replicas, len(going))
    if isinstance(verdict, Failure):
        return _told("Warning", failed_status(job, replicas, verdict, now), job.status, restored(present.pods))
    if has_succeeded(job, replicas, now):
        return _told("Normal", succeeded_status(job, replicas, now), job.status, restored(present.pods))
    if job.spec.run_policy.suspend:
        return suspend(job, observed, now, policy)
    if isinstance(verdict, Teardown):
        return _told("Warning", restarting_status(job, observed, verdict, now), job.status)
    deadline = next_deadline(job, replicas, going)
    if deadline is not None and deadline.at <= now:
        return _told("Warning", failed_status(job, replicas, deadline.failure, now), job.status, restored(present.pods))
    status = running_status(job, replicas, now)
    left = left_behind(status.conditions, going, observed.nodes, now, policy)
    told = with_ignored_change(read.specified, left.conditions, now)
    status = msgspec.structs.replace(status, conditions=told)
    record_in = time_to_record(job.status, status, replicas, now)
    begin = next_attempt(job, now, policy)
    waiting = begin is not None and begin > now
    return Plan(
        actions=(
            *(delete_pod(pod) for pod in going if not pod.deleting),
            *restored(present.pods),
            *left.deletions,
            *missing_children(job, observed),
            *(() if waiting else missing_pods(job, replicas, going)),
        ),
        status=status if record_in == _AT_ONCE else None,
        events=(
            *(() if job.status.conditions else notices(read.asked)),
            *left.events,
            *labels_told(present.pods),
            *trouble_events(job.status.conditions, told),
            *_ignored_change(left.conditions, told),
        ),
        requeue_after=_soonest(
            record_in if record_in != _AT_ONCE else None,
            begin - now if begin is not None and waiting else None,
            deadline.at - now if deadline is not None else None,
            left.look_again,
            time_until_trouble(job, replicas, now),
        ),
    )


def _finished(job: MXJob, observed: Observed, now: datetime) -> Plan:
    left = time_to_live(job, now)
    if left is not None and left <= _AT_ONCE:
        return Plan(actions=(DeleteJob(job.metadata.name, job.metadata.uid),))
    return Plan(actions=clean_up(job, observed), status=_with_state(job.status), requeue_after=left)


def _has_pods_left(job: MXJob, observed: Observed, decided: Plan, now: datetime) -> bool:
    """Whether pods of a job that is over, or is by this plan, are still to go."""
    actions = decided.actions
    if decided.status is not None and conditions.is_terminal(decided.status):
        actions = _finished(msgspec.structs.replace(job, status=decided.status), observed, now).actions
    return any(isinstance(action, DeletePod | StopPod) for action in actions) or any(
        pod.deleting for pod in observed.pods
    )


def _with_state(status: MXJobStatus) -> MXJobStatus | None:
    """The status of a job that training-operator 1.8.1 finished, with the one word that `kubectl get` shows."""
    return None if status.state else msgspec.structs.replace(status, state=conditions.state_of(status.conditions))


def _told(
    event_type: Literal["Normal", "Warning"],
    status: MXJobStatus,
    before: MXJobStatus,
    labels: tuple[Action, ...] = (),
) -> Plan:
    """A status that goes out with its newest condition as an event, without actions but for labels to restore."""
    newest = status.conditions[-1]
    troubles = trouble_events(before.conditions, status.conditions)
    return Plan(actions=labels, status=status, events=(*troubles, Event(event_type, newest.reason, newest.message)))


def _ignored_change(before: tuple[Condition, ...], after: tuple[Condition, ...]) -> tuple[Event, ...]:
    if after == before or not conditions.is_true(after, conditions.REPLICAS_CHANGE_IGNORED):
        return ()
    return (Event("Warning", conditions.REPLICAS_CHANGE_IGNORED, after[-1].message),)


def _soonest(*waits: timedelta | None) -> timedelta | None:
    return min((wait for wait in waits if wait is not None), default=None)
