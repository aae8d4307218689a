"""A job's states, and what it waits for, in a task's log: each once; the same for workers and triggers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mxnet_operator.api.conditions import SUCCEEDED, job_state, terminal_message
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.readers.waiting import waiting_reasons
from mxnet_provider.job.summary import counts

if TYPE_CHECKING:
    from airflow.sdk.types import Logger


@dataclass
class StateLog:
    """Log of a job's states and of its reasons to wait, written as the job is polled."""

    ref: JobRef
    state: str = ""
    reasons: tuple[str, ...] = ()

    def report(self, job: Mapping[str, Any], log: "Logger") -> None:
        """Log the state where it has changed, and each reason to wait that was not there at the last poll."""
        if (state := job_state(job)) != self.state:
            self.state = state
            said = terminal_message(job) if state == SUCCEEDED else ""
            log.info("%s: %s%s%s", self.ref.title, state, counts(job), f": {said}" if said else "")
        before, self.reasons = self.reasons, waiting_reasons(job)
        for reason in self.reasons:
            if reason not in before:
                log.warning("%s waits: %s", self.ref.title, reason)
