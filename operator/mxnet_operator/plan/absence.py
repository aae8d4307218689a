"""Decide which plans need an uncached read first, because they would be wrong if unobserved pods existed.

A cache of pods may lag behind the job, and a watch by labels misses a pod that has lost its label, or a child that an
older operator made. The other way round,
a plan would be wrong where a cache of jobs lags behind the pods.
"""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import (
    ChangeChild,
    CreateChild,
    CreatePod,
    DeleteChild,
    Plan,
)
from mxnet_operator.plan.begun import is_begun
from mxnet_operator.plan.joining import last_created
from mxnet_operator.plan.ready import replicas_in

_JUST_ENDED: Final = timedelta(minutes=1)
_STATES: Final = frozenset({conditions.FAILED, conditions.SUCCEEDED, conditions.SUSPENDED})


def relies_on_absence(job: MXJob, decided: Plan) -> bool:
    """Return whether a plan would be wrong if the job had pods that weren't observed."""
    if any(isinstance(action, CreatePod) and action.attempt > 0 for action in decided.actions):
        return True
    if any(isinstance(action, ChangeChild | DeleteChild) and action.needs_fresh_pods for action in decided.actions):
        return True
    status = decided.status
    return status is not None and (status.state in _STATES or status.restarts > job.status.restarts)


def may_have_unwatched_pods(job: MXJob) -> bool:
    """Return whether the job was begun by an operator before this one, whose pods may lack our labels."""
    status = job.status
    has_begun = is_begun(status) and status.state != conditions.SUSPENDED and not conditions.is_terminal(status)
    return has_begun and not status.started_replicas


def may_have_unwatched_children(job: MXJob, decided: Plan) -> bool:
    """Return whether children that the plan creates may exist without our labels: the job has been begun before.

    None do once it says Suspended, since they are deleted with that.
    """
    has_begun = is_begun(job.status) and job.status.state != conditions.SUSPENDED
    return has_begun and any(isinstance(action, CreateChild) for action in decided.actions)


def relies_on_record(decided: Plan) -> bool:
    """Return whether a plan would be wrong if the cached job were out of date.

    Where it creates members of a gang: once pods of a gang have been deleted, only the status records that all of them
    existed, and until the status records with which restartScope several replicas were started, an edit can make them a
    gang. And where it takes the job from its queue, or has it ask for something else there: a suspension may have ended
    since, and an edit have been taken back.
    """
    job = decided.job
    if any(isinstance(action, ChangeChild | DeleteChild) and action.needs_newest_job for action in decided.actions):
        return True
    if job is None or not any(isinstance(action, CreatePod) for action in decided.actions):
        return False
    return last_created(job) is not None or (replicas_in(job) > 1 and not job.status.started_replicas)


def has_just_ended(job: MXJob, now: datetime) -> bool:
    """Return whether the job ended less than a minute ago: its clean-up would miss a pod that lost its label then."""
    ended = job.status.completion_time
    return conditions.is_terminal(job.status) and ended is not None and abs(now - ended) < _JUST_ENDED
