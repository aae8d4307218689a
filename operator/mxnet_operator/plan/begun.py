"""Whether a job was begun: by this controller, or by an operator before it, whose pods and their order are not known.

A new job may say that it can't be reconciled before anything else: then nothing was created for it yet.
"""

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJobStatus


def is_begun(status: MXJobStatus) -> bool:
    """Return whether a job was reconciled, by any operator: it may have pods, and its notices were posted.

    An operator that creates pods writes startTime: older ones and earlier versions of this one, too.
    """
    if not status.conditions:
        return False
    is_told_of = any(each.type == conditions.RECONCILE_ERROR for each in status.conditions)
    has_run = status.start_time is not None or bool(status.started_replicas)
    return has_run or not is_told_of or conditions.state_of(status.conditions) != conditions.CREATED


def begins(status: MXJobStatus) -> bool:
    """Return whether the job hasn't said that it started, or was suspended: this controller made what pods it has."""
    return not is_begun(status) or conditions.is_true(status.conditions, conditions.SUSPENDED)
