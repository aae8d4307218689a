"""Where the controller says what it does, for whoever counts it."""

from enum import StrEnum

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJobStatus
from mxnet_operator.kube.observers import QueueObserver


class Result(StrEnum):
    """How one look at a job ended, in controller-runtime's words."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    """It is to be looked at again at a known time."""
    REQUEUE = "requeue"
    """A write missed because the job has changed meanwhile: no error, and it comes again."""
    ERROR = "error"


class JobEvent(StrEnum):
    """What becomes of a job, in the words of training-operator's counters."""

    CREATED = "created"
    RESTARTED = "restarted"
    SUCCESSFUL = "successful"
    FAILED = "failed"
    DELETED = "deleted"


class ControllerObserver(QueueObserver):
    """Hears what the controller does; this one doesn't listen. Only what a leader does is told of."""

    def reconciled(self, result: Result) -> None:
        """A look at a job has ended."""

    def panicked(self) -> None:
        """A look at a job has ended in an exception of our own."""

    def crashed(self, task: str) -> None:
        """A task that should run for ever met an unexpected error, and is begun anew."""

    def job(self, namespace: str, event: JobEvent) -> None:
        """Something has become of a job."""

    def status_written(self, namespace: str, old: MXJobStatus, new: MXJobStatus) -> None:
        """A status was stored in place of another; tells `job` what that means.

        Told by the write, not by the caches: each change once, whichever of two controllers makes it and however often
        they start.
        """
        if not old.conditions and new.conditions:
            self.job(namespace, JobEvent.CREATED)
        if new.restarts > old.restarts and conditions.state_of(new.conditions) == conditions.RESTARTING:
            self.job(namespace, JobEvent.RESTARTED)  # Suspension raises the number as well.
        if not conditions.is_terminal(old):
            ended = conditions.state_of(new.conditions)
            if ended == conditions.SUCCEEDED:
                self.job(namespace, JobEvent.SUCCESSFUL)
            elif ended == conditions.FAILED:
                self.job(namespace, JobEvent.FAILED)
