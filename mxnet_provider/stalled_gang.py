"""Where all workers of a job stand still, in the log of its task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.client.job_client import JobRef
from mxnet_operator.client.training import compare_workers
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.worker_logs import stall_in

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.job_client import AsyncJobClient

_SETTLE_SECONDS: Final = 10.0
"""By then the other workers have written where they stand."""
_QUIET_SECONDS: Final = 320.0
"""Seconds without a line after which another worker may have written so: this one may have left early."""


@dataclass
class StalledGang:
    """Warns once where each worker stands still, after the log of one has said so, or has been quiet."""

    client: "AsyncJobClient"
    log: "Logger"
    clock: Callable[[], float]
    look_at: float | None = None

    def read(self, line: str) -> None:
        self.look_at = self.clock() + (_SETTLE_SECONDS if stall_in(line) else _QUIET_SECONDS)

    async def poll(self, job: dict[str, Any]) -> None:
        if self.look_at is None or self.clock() < self.look_at:
            return
        self.look_at = None
        await compare_workers(self.client.api, job, training := TrainingLog())
        if training.stall:
            self.log.warning("%s %s", JobRef.of(job).title, training.stall)
