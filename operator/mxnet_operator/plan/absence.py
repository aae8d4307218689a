"""When a plan would be wrong if pods existed that nobody observed: they are then asked for before it is carried out.

A cache of pods may lag behind the job, and a watch by labels misses a pod that has lost its label.
"""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import CreatePod, Plan

_JUST_ENDED: Final = timedelta(minutes=1)
_STATES: Final = frozenset({conditions.FAILED, conditions.SUCCEEDED, conditions.SUSPENDED})


def relies_on_absence(job: MXJob, decided: Plan) -> bool:
    """Whether a plan would be wrong if the job had pods that weren't observed."""
    if any(isinstance(action, CreatePod) and action.attempt > 0 for action in decided.actions):
        return True
    status = decided.status
    return status is not None and (status.state in _STATES or status.restarts > job.status.restarts)


def has_just_ended(job: MXJob, now: datetime) -> bool:
    """Whether a job's clean-up begins: a pod that lost its label as the verdict was written would be missed by it."""
    ended = job.status.completion_time
    return conditions.is_terminal(job.status) and ended is not None and abs(now - ended) < _JUST_ENDED
