"""Deadlines of an unfinished job: activeDeadlineSeconds, scheduleTimeoutSeconds, progressDeadlineSeconds.

activeDeadlineSeconds is for all of it, scheduleTimeoutSeconds for its placement, progressDeadlineSeconds for its start.
"""

from datetime import datetime
from typing import Final

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan.actions import Effects, Failure
from mxnet_operator.plan.fewer_workers import placed_at_once
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.placement import shortage_in_words
from mxnet_operator.plan.replicas import Replica, ReplicaState
from mxnet_operator.plan.started import start_time
from mxnet_operator.plan.starting import CANNOT_START, reason_to_wait
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.success import EARLY_EXIT_SAID_AFTER, early_exit, without_servers
from mxnet_operator.plan.terminating_pods import where
from mxnet_operator.readers.durations import after

_NAMED: Final = 5
_WHOLE_SECOND: Final = 1
"""Error of object timestamps in seconds: they are cut to whole ones."""


class Deadline(msgspec.Struct, frozen=True):
    """Moment by which something must have happened, with the failure that it means otherwise."""

    at: datetime
    failure: Failure


def deadlines(state: JobState) -> Failure | Effects:
    """Return the failure of a job whose earliest deadline is over; else when it will be."""
    job, replicas, terminating = state.job, state.replicas, state.terminating
    found = (
        _active(job, replicas),
        _scheduled(job, replicas, terminating),
        _progress(job, replicas, terminating),
        _servers_exited(job, replicas),
    )
    first = min((one for one in found if one is not None), key=lambda one: one.at, default=None)
    if first is None:
        return Effects()
    return first.failure if first.at <= state.now else Effects(requeue_after=first.at - state.now)


def _active(job: MXJob, replicas: tuple[Replica, ...]) -> Deadline | None:
    seconds, start = job.spec.run_policy.active_deadline_seconds, start_time(job.status)
    if seconds is None or start is None:
        return None
    message = f"Job {job.metadata.name} has failed because it was active longer than specified deadline ({seconds} s)"
    if why := without_servers(replicas):
        message += f": {why}"
    return Deadline(after(start, seconds), Failure(message))


def _scheduled(job: MXJob, replicas: tuple[Replica, ...], terminating: tuple[PodView, ...]) -> Deadline | None:
    """Return the deadline for scheduling: from the creation of the attempt's pods until enough of them have a node."""
    policy = job.spec.run_policy.scheduling_policy
    seconds = policy.schedule_timeout_seconds if policy is not None else None
    if policy is None or not seconds or terminating:
        return None
    placed = sum(replica.state is ReplicaState.DONE or _has_node(replica) for replica in replicas)
    if placed >= placed_at_once(job):
        return None
    created = [replica.pod.created_at for replica in replicas if replica.pod and replica.pod.created_at]
    waits_to_restart = conditions.is_true(job.status.conditions, conditions.RESTARTING)
    since = max(created, default=None if waits_to_restart else start_time(job.status))
    if since is None:
        return None
    message = (
        f"mxjob {job.metadata.name} is failed because it could not be scheduled within {seconds} s"
        f" (scheduleTimeoutSeconds): {shortage_in_words(job, replicas)}"
    )
    return Deadline(after(since, seconds), Failure(message))


def _has_node(replica: Replica) -> bool:
    return replica.pod is not None and replica.pod.is_placed


def _progress(job: MXJob, replicas: tuple[Replica, ...], terminating: tuple[PodView, ...]) -> Deadline | None:
    """Return the deadline for starting: from when all pods are scheduled, in a restart from the teardown on.

    Waiting to be scheduled is not counted: that depends on the scheduler.
    """
    seconds = job.spec.run_policy.progress_deadline_seconds
    waiting = [replica for replica in replicas if not replica.started]
    if seconds is None or not waiting:
        return None
    if terminating:
        since = _torn_down_at(job.status)
        what = f"pods of the previous attempt are still terminating ({', '.join(map(where, terminating[:_NAMED]))})"
    else:
        needed = [replica for replica in replicas if replica.state is not ReplicaState.DONE]
        placed = [replica.pod.placed_at for replica in needed if replica.pod and replica.pod.placed_at]
        since = max(placed) if len(placed) == len(needed) else None
        what = f"{', '.join(replica.label for replica in waiting[:_NAMED])} did not start"
        pods = [replica.pod for replica in waiting if replica.pod is not None and reason_to_wait(replica.pod)]
        if pods:
            telling = next((pod for pod in pods if pod.waiting_reason in CANNOT_START), pods[0])
            what += f" ({reason_to_wait(telling)})"
    if since is None:
        return None
    message = f"mxjob {job.metadata.name} is failed because it made no progress for {seconds} s: {what}"
    return Deadline(after(since, seconds + _WHOLE_SECOND), Failure(message))


def _servers_exited(job: MXJob, replicas: tuple[Replica, ...]) -> Deadline | None:
    """Return the deadline of Workers whose scheduler or servers exited too early, from when the condition says so."""
    seconds, found = job.spec.run_policy.progress_deadline_seconds, early_exit(replicas)
    if seconds is None or found is None:
        return None
    message = f"mxjob {job.metadata.name} is failed because it made no progress for {seconds} s: {found.message}"
    return Deadline(after(found.since, max(seconds, EARLY_EXIT_SAID_AFTER.seconds)), Failure(message))


def _torn_down_at(status: MXJobStatus) -> datetime | None:
    """Return when the previous attempt ended: by a restart, or by a suspension that was taken back."""
    restarting = (c for c in status.conditions if c.type == conditions.RESTARTING and c.status == "True")
    suspended = (c for c in status.conditions if c.type == conditions.RUNNING and c.status == "False")
    return next((c.last_update_time for c in (*restarting, *suspended)), None)
