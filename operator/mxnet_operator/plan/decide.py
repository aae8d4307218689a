"""The order in which the policies are asked: the one place that sees all of them."""

from datetime import datetime, timedelta
from typing import Literal

from mxnet_operator.api import conditions
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan.actions import Event, Plan
from mxnet_operator.plan.cleanup import clean_up
from mxnet_operator.plan.failure import first_failure
from mxnet_operator.plan.notices import notices
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.replicas import replicas_of
from mxnet_operator.plan.status import failed_status, running_status, succeeded_status, time_to_record
from mxnet_operator.plan.success import has_succeeded
from mxnet_operator.plan.topology import missing_children

_AT_ONCE = timedelta(0)


def plan(job: MXJob, observed: Observed, now: datetime) -> Plan:
    """What to do next with a valid job, given its children as observed; `now` is UTC.

    Pure: the same arguments give the same answer, and carrying an answer out twice does no harm.
    """
    if job.metadata.deletion_timestamp is not None:
        return Plan()
    asked, job = job, with_defaults(job)
    now = now.replace(microsecond=0)
    observed = observed.owned_by(job.metadata.uid)
    if conditions.is_terminal(job.status):
        return Plan(actions=clean_up(job, observed))
    replicas = replicas_of(job, observed)
    failure = first_failure(job, replicas)
    if failure is not None:
        return _verdict("Warning", failed_status(job, replicas, failure, now))
    if has_succeeded(job, replicas):
        return _verdict("Normal", succeeded_status(job, replicas, now))
    status = running_status(job, replicas, now)
    wait = time_to_record(job.status, status, replicas, now)
    return Plan(
        actions=missing_children(job, replicas, observed),
        status=status if wait == _AT_ONCE else None,
        events=() if job.status.conditions else notices(asked),
        requeue_after=wait if wait != _AT_ONCE else None,
    )


def _verdict(event_type: Literal["Normal", "Warning"], status: MXJobStatus) -> Plan:
    last = status.conditions[-1]
    return Plan(status=status, events=(Event(event_type, last.reason, last.message),))
