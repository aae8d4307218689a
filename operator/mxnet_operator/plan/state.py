"""State of an unfinished job: what every policy decides by, read from the observation once."""

from datetime import datetime
from typing import Literal

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.status_size import says, shortened
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan.actions import Effects, Event, Report
from mxnet_operator.plan.children import Rules
from mxnet_operator.plan.gang import GangState, scheduled_gang
from mxnet_operator.plan.observed import Observed, PodView
from mxnet_operator.plan.queue import QueueAdmission, admission_of
from mxnet_operator.plan.replicas import Replica, pods_of_earlier_attempts, replicas_of
from mxnet_operator.plan.started import as_started
from mxnet_operator.plan.times import Policy


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """State of an unfinished job, with what it was started with, its pods, and its place in a gang and a queue."""

    asked: MXJob
    """Job as its user wrote it."""
    specified: MXJob
    """Job with defaults."""
    job: MXJob
    """Job with defaults and the replicas it was started with: what runs."""
    observed: Observed
    """Children that the job owns."""
    present: Observed
    """The same without the pods of earlier attempts."""
    terminating: tuple[PodView, ...]
    """Pods of earlier attempts, which are to be deleted and whose exits no longer count."""
    replicas: tuple[Replica, ...]
    gang: GangState | None
    """Gang of the job, where its scheduler knows of gangs."""
    admission: QueueAdmission
    rules: Rules
    """Rules of the kinds of children that the server serves."""
    policy: Policy
    now: datetime

    def condition(self, condition_type: str) -> Condition | None:
        """Return the condition of this type as the job's status has it."""
        return next((each for each in self.job.status.conditions if each.type == condition_type), None)

    def no_longer(self, condition_type: str, reason: str, message: str) -> Effects:
        """Return the effects that make a condition False, where it is True."""
        if not conditions.is_true(self.job.status.conditions, condition_type):
            return Effects()
        return Effects(reports=(Report(condition_type, reason, message, "False"),))

    def warn(
        self, condition_type: str, reason: str, message: str, *, again: Literal["never", "if changed"] = "never"
    ) -> Effects:
        """Return the effects that make a condition True, and post it as a Warning Event when it becomes so.

        `again` says whether an Event is also posted when the message of a condition that is True changes.
        """
        old = self.condition(condition_type)
        was_true = old is not None and old.status == "True"
        is_news = not was_true or (again == "if changed" and old is not None and not says(old.message, message))
        events = (Event("Warning", condition_type, shortened(message)),) if is_news else ()
        return Effects(reports=(Report(condition_type, reason, message),), events=events)


def state_of(asked: MXJob, observed: Observed, now: datetime, policy: Policy, rules: Rules) -> JobState:
    """Return the state of a job as its user wrote it, which has not ended; `observed` has only what the job owns."""
    specified = with_defaults(asked)
    job = as_started(specified)
    terminating = pods_of_earlier_attempts(job, observed)
    present = observed.without(terminating)
    return JobState(
        asked=asked,
        specified=specified,
        job=job,
        observed=observed,
        present=present,
        terminating=terminating,
        replicas=replicas_of(job, present),
        gang=scheduled_gang(job, observed, policy, rules),
        admission=admission_of(job, observed),
        rules=rules,
        policy=policy,
        now=now,
    )
