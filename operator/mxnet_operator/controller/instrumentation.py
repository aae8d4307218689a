"""Instrumentation interface of the controller: the observer that metrics implement."""

from enum import StrEnum

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJobStatus
from mxnet_operator.kube.queue import QueueObserver


class Result(StrEnum):
    """Result of one reconciliation, in controller-runtime's words."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    """The job is requeued at a known time."""
    REQUEUE = "requeue"
    """A write conflicted because the job has changed meanwhile: no error, and it is requeued."""
    ERROR = "error"


class JobEvent(StrEnum):
    """Change in a job's life, in the words of training-operator's counters."""

    CREATED = "created"
    RESTARTED = "restarted"
    SUCCESSFUL = "successful"
    FAILED = "failed"
    DELETED = "deleted"


class ControllerObserver(QueueObserver):
    """Observer of the controller that ignores every callback; only the leader calls them."""

    def reconciled(self, result: Result) -> None:
        """Record the end of a reconciliation."""

    def panicked(self) -> None:
        """Record a reconciliation that ended in an unexpected exception."""

    def crashed(self, task: str) -> None:
        """Record an unexpected error of a background task, which is started again."""

    def job(self, namespace: str, event: JobEvent) -> None:
        """Record a change in a job's life."""

    def job_started(self, namespace: str, waited: float) -> None:
        """Record that a job runs for the first time, `waited` seconds after it was accepted."""

    def status_written(self, namespace: str, old: MXJobStatus, new: MXJobStatus) -> None:
        """Record that a status replaced another; calls `job` and `job_started` with the changes between them.

        By writes, not by the caches: each change is counted once, whichever of two controllers makes it and however
        often they start.
        """
        if not old.conditions and new.conditions:
            self.job(namespace, JobEvent.CREATED)
        accepted, started = (
            conditions.since(new.conditions, each) for each in (conditions.CREATED, conditions.RUNNING)
        )
        if accepted and started and not (new.restarts or conditions.since(old.conditions, conditions.RUNNING)):
            self.job_started(namespace, (started - accepted).total_seconds())
        if new.restarts > old.restarts and conditions.state_of(new.conditions) == conditions.RESTARTING:
            self.job(namespace, JobEvent.RESTARTED)  # Suspension raises the number as well.
        if not conditions.is_terminal(old):
            ended = conditions.state_of(new.conditions)
            if ended == conditions.SUCCEEDED:
                self.job(namespace, JobEvent.SUCCESSFUL)
            elif ended == conditions.FAILED:
                self.job(namespace, JobEvent.FAILED)
