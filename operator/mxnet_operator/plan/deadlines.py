"""When a job has taken too long: activeDeadlineSeconds for all of it, progressDeadlineSeconds for its start."""

from datetime import datetime, timedelta

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan.failure import Failure
from mxnet_operator.plan.replicas import Outcome, Replica
from mxnet_operator.plan.tuning import without_servers


class Deadline(msgspec.Struct, frozen=True):
    """A moment by which something must have happened, and what it means that it did not."""

    at: datetime
    failure: Failure


def next_deadline(job: MXJob, replicas: tuple[Replica, ...], *, tearing_down: bool) -> Deadline | None:
    """The deadline of a job that is not over which comes first; None where it has none."""
    deadlines = (_active(job, replicas), _progress(job, replicas, tearing_down=tearing_down))
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
    return Deadline(start + timedelta(seconds=seconds), Failure(message))


def _progress(job: MXJob, replicas: tuple[Replica, ...], *, tearing_down: bool) -> Deadline | None:
    """From when all pods of the attempt are placed until all have started; in a restart from the teardown on.

    Waiting to be placed is not counted: that is up to the scheduler.
    """
    seconds = job.spec.run_policy.progress_deadline_seconds
    waiting = [replica for replica in replicas if not replica.started]
    if seconds is None or not waiting:
        return None
    if tearing_down:
        since = next((c.last_update_time for c in job.status.conditions if c.type == conditions.RESTARTING), None)
        what = "the pods of the attempt before are still there"
    else:
        needed = [replica for replica in replicas if replica.outcome is not Outcome.DONE]
        placed = [replica.pod.scheduled_at for replica in needed if replica.pod and replica.pod.scheduled_at]
        since = max(placed) if len(placed) == len(needed) else None
        what = f"{', '.join(replica.label for replica in waiting[:5])} did not start"
        first = waiting[0].pod
        if first is not None and first.waiting_reason:
            what += f" ({first.waiting_reason}: {first.waiting_message})"
    if since is None:
        return None
    message = f"mxjob {job.metadata.name} is failed because it made no progress for {seconds} s: {what}"
    return Deadline(since + timedelta(seconds=seconds), Failure(message))
