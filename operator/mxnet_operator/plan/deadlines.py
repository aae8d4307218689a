"""When a job has taken too long: activeDeadlineSeconds for all of it, progressDeadlineSeconds for its start."""

from datetime import datetime
from typing import Final

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.spans import after
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan.early_exit import SAID_AFTER, early_exit
from mxnet_operator.plan.failure import Failure
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Outcome, Replica
from mxnet_operator.plan.starting import reason_to_wait
from mxnet_operator.plan.stuck import where
from mxnet_operator.plan.tuning import without_servers

_NAMED: Final = 5


class Deadline(msgspec.Struct, frozen=True):
    """A moment by which something must have happened, and what it means that it did not."""

    at: datetime
    failure: Failure


def next_deadline(job: MXJob, replicas: tuple[Replica, ...], going: tuple[PodView, ...]) -> Deadline | None:
    """The deadline of a job that is not over which comes first; None where it has none.

    `going` are the pods of an attempt that was torn down which are still there.
    """
    deadlines = (_active(job, replicas), _progress(job, replicas, going), _servers_exited(job, replicas))
    return min((one for one in deadlines if one is not None), key=lambda one: one.at, default=None)


def start_time(status: MXJobStatus) -> datetime | None:
    """Since when the job is active: a suspended one is not, though training-operator 1.8.1 left its startTime there."""
    return None if conditions.is_true(status.conditions, conditions.SUSPENDED) else status.start_time


def _active(job: MXJob, replicas: tuple[Replica, ...]) -> Deadline | None:
    seconds, start = job.spec.run_policy.active_deadline_seconds, start_time(job.status)
    if seconds is None or start is None:
        return None
    name = job.metadata.name
    message = f"Job {name} has failed because it was active longer than specified deadline ({seconds} s)"
    if why := without_servers(replicas):
        message += f": {why}"
    return Deadline(after(start, seconds), Failure(message))


def _progress(job: MXJob, replicas: tuple[Replica, ...], going: tuple[PodView, ...]) -> Deadline | None:
    """From when all pods of the attempt are placed until all have started; in a restart from the teardown on.

    Waiting to be placed is not counted: that is up to the scheduler.
    """
    seconds = job.spec.run_policy.progress_deadline_seconds
    waiting = [replica for replica in replicas if not replica.started]
    if seconds is None or not waiting:
        return None
    if going:
        since = _torn_down_at(job.status)
        what = f"pods of the attempt before are still there ({', '.join(map(where, going[:_NAMED]))})"
    else:
        needed = [replica for replica in replicas if replica.outcome is not Outcome.DONE]
        placed = [replica.pod.scheduled_at for replica in needed if replica.pod and replica.pod.scheduled_at]
        since = max(placed) if len(placed) == len(needed) else None
        what = f"{', '.join(replica.label for replica in waiting[:_NAMED])} did not start"
        pods = [replica.pod for replica in waiting if replica.pod is not None and replica.pod.waiting_reason]
        if pods:
            what += f" ({reason_to_wait(pods[0])})"
    if since is None:
        return None
    message = f"mxjob {job.metadata.name} is failed because it made no progress for {seconds} s: {what}"
    return Deadline(after(since, seconds), Failure(message))


def _servers_exited(job: MXJob, replicas: tuple[Replica, ...]) -> Deadline | None:
    """From when Workers wait for a scheduler and servers that exited too early; not before that is said."""
    seconds, found = job.spec.run_policy.progress_deadline_seconds, early_exit(replicas)
    if seconds is None or found is None:
        return None
    message = f"mxjob {job.metadata.name} is failed because it made no progress for {seconds} s: {found.message}"
    return Deadline(after(found.since, max(seconds, SAID_AFTER.seconds)), Failure(message))


def _torn_down_at(status: MXJobStatus) -> datetime | None:
    """When the attempt before was given up: by a restart, or by a suspension that was taken back."""
    restarting = (c for c in status.conditions if c.type == conditions.RESTARTING and c.status == "True")
    suspended = (c for c in status.conditions if c.type == conditions.RUNNING and c.status == "False")
    return next((c.last_update_time for c in (*restarting, *suspended)), None)
