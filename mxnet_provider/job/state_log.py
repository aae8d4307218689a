"""A job's states, and what it waits for, in a task's log: each once; the same for workers and triggers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mxnet_operator.api.conditions import SUCCEEDED, job_state, terminal_message
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.readers.waiting import waiting_reasons
from mxnet_provider.job.summary import counts

if TYPE_CHECKING:
    from airflow.sdk.types import Logger


class StateLog:
    """Log of a job's states and of its reasons to wait, written as the job is polled."""

    def __init__(self, ref: JobRef) -> None:
        self._ref = ref
        self._state = ""
        self._reasons: tuple[str, ...] = ()

    def report(self, job: Mapping[str, Any], log: "Logger") -> None:
        """Log the state where it has changed, and each reason to wait that was not there at the last poll."""
        if (state := job_state(job)) != self._state:
            self._state = state
            said = terminal_message(job) if state == SUCCEEDED else ""
            log.info("%s: %s%s%s", self._ref.title, state, counts(job), f": {said}" if said else "")
        before, self._reasons = self._reasons, waiting_reasons(job)
        for reason in self._reasons:
            if reason not in before:
                log.warning("%s waits: %s", self._ref.title, reason)
