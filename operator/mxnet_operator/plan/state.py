"""State of an unfinished job: what every policy decides by, read from the observation once."""

from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Literal

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.status_size import is_same_message, shortened
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan.actions import Effects, Event, Failure, Report, Teardown
from mxnet_operator.plan.children import Rules
from mxnet_operator.plan.failures import end_of_attempt
from mxnet_operator.plan.observed import Observed, PodView
from mxnet_operator.plan.replicas import Replica, pods_of_earlier_attempts, replicas_of
from mxnet_operator.plan.started import as_started
from mxnet_operator.plan.times import Policy, time_until_said_again

if TYPE_CHECKING:
    from mxnet_operator.plan.integration import IntegrationPolicy


class AdmissionState(Enum):
    """Whether a job may have pods."""

    RUNS = "runs"
    """It may."""
    WAITS = "waits"
    """It has no pods, or gives them up."""
    HOLDS = "holds"
    """It goes on as it is, and gets no further pods."""
    UNKNOWN = "unknown"
    """Nothing is decided yet: the controller has just begun."""


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """Admission of a job, by an integration or by its user's `suspend`."""

    state: AdmissionState = AdmissionState.RUNS
    waits: str = ""
    """Words for a job that waits: `waits in queue a`; empty for one that is suspended."""
    requeue_after: timedelta | None = None


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """State of an unfinished job, with what it was started with, its pods, and whether it may have any."""

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
    attempt_end: Failure | Teardown | None
    """What failed replicas lead to; None while none may be replaced now."""
    admission: Admission
    rules: Rules
    """Rules of the kinds of children that the server serves."""
    policy: Policy
    now: datetime
    integrations: "tuple[IntegrationPolicy, ...]" = ()

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
        is_news = not was_true or (
            again == "if changed" and old is not None and not is_same_message(old.message, message)
        )
        events = (Event("Warning", condition_type, shortened(message)),) if is_news else ()
        return Effects(reports=(Report(condition_type, reason, message),), events=events)

    def waits(self, condition_type: str, reason: str, beginning: str, words: str, *, alike: bool) -> Effects:
        """Return the effects that make a condition False whose words change with other jobs and pods.

        Its message stays while `beginning`, the part that counts, does and it has words if there are any, and else for
        `times.SAY_AGAIN`. `alike` says whether the reason that the condition has is one of the same kind.
        """
        old = self.condition(condition_type)
        if alike and old is not None and old.status == "False":
            if old.message.startswith(beginning) and (old.message != beginning or not words):
                return Effects()
            if kept := time_until_said_again(old, self.now):
                return Effects(requeue_after=kept)
        return Effects(reports=(Report(condition_type, reason, f"{beginning}{words}", "False"),))


def state_of(
    asked: MXJob,
    observed: Observed,
    now: datetime,
    policy: Policy,
    rules: Rules,
    *,
    integrations: "tuple[IntegrationPolicy, ...]",
) -> JobState:
    """Return the state of a job as its user wrote it, which has not ended; `observed` has only what the job owns."""
    specified = with_defaults(asked)
    job = as_started(specified)
    terminating = pods_of_earlier_attempts(job, observed)
    present = observed.without(terminating)
    replicas = replicas_of(job, present)
    admissions = (each.admission(job, observed) for each in integrations)
    admission = next((each for each in admissions if each is not None), None)
    suspended = Admission(state=AdmissionState.WAITS if job.spec.run_policy.suspend else AdmissionState.RUNS)
    return JobState(
        asked=asked,
        specified=specified,
        job=job,
        observed=observed,
        present=present,
        terminating=terminating,
        replicas=replicas,
        attempt_end=end_of_attempt(job, replicas, len(terminating)),
        admission=admission or suspended,
        rules=rules,
        policy=policy,
        now=now,
        integrations=integrations,
    )
