"""Decide which plans need an uncached read first: they would be wrong if a cache of pods or jobs lagged behind."""

from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import (
    ChangeQueueWorkload,
    CreatePod,
    DeleteQueueWorkload,
    Plan,
    SetQueueConditions,
)
from mxnet_operator.plan.begun import is_begun
from mxnet_operator.plan.joining import last_created
from mxnet_operator.plan.ready import replicas_in
from mxnet_operator.readers.kueue import FINISHED

_STATES: Final = frozenset({conditions.FAILED, conditions.SUCCEEDED, conditions.SUSPENDED})


def relies_on_absence(job: MXJob, decided: Plan) -> bool:
    """Return whether a plan would be wrong if the job had pods that weren't observed."""
    if any(isinstance(action, CreatePod) and action.attempt > 0 for action in decided.actions):
        return True
    if any(isinstance(action, SetQueueConditions) and _ends_admission(action) for action in decided.actions):
        return True
    if any(isinstance(action, DeleteQueueWorkload) for action in decided.actions):
        return True
    status = decided.status
    return status is not None and (status.state in _STATES or status.restarts > job.status.restarts)


def _ends_admission(action: SetQueueConditions) -> bool:
    return action.gives_quota_back or any((each.type, each.status) == (FINISHED, "True") for each in action.conditions)


def may_have_unlabelled_pods(job: MXJob) -> bool:
    """Return whether an operator before this one began the job: its pods may lack our labels."""
    status = job.status
    has_begun = is_begun(status) and status.state != conditions.SUSPENDED and not conditions.is_terminal(status)
    return has_begun and not status.started_replicas


def relies_on_record(decided: Plan) -> bool:
    """Return whether a plan would be wrong if the cached job were out of date.

    Where it creates members of a gang: once pods of a gang have been deleted, only the status records that all of them
    existed, and until the status records with which restartScope several replicas were started, an edit can make them a
    gang. And where it takes the job from its queue, or has it ask for something else there: a suspension may have ended
    since, and an edit have been taken back.
    """
    job = decided.job
    if any(isinstance(action, DeleteQueueWorkload | ChangeQueueWorkload) for action in decided.actions):
        return True
    if job is None or not any(isinstance(action, CreatePod) for action in decided.actions):
        return False
    return last_created(job) is not None or (replicas_in(job) > 1 and not job.status.started_replicas)
