"""Where all workers of a job stand still, in the log of its task."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mxnet_operator.api import names
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.client.stalls import read_trainings
from mxnet_operator.readers.pods import has_log, label_of
from mxnet_operator.readers.worker_logs import MOST_WORKERS, gang_stall, stall_in
from mxnet_provider.job.replicas import in_order

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
    ref: JobRef
    log: "Logger"
    clock: Callable[[], float]
    look_at: float | None = None

    def read(self, line: str) -> None:
        self.look_at = self.clock() + (_SETTLE_SECONDS if stall_in(line) else _QUIET_SECONDS)

    async def poll(self) -> None:
        if self.look_at is None or self.clock() < self.look_at:
            return
        self.look_at = None
        pods = [pod for pod in in_order(await self.client.replica_pods(self.ref)) if has_log(pod)]
        workers = [pod for pod in pods if label_of(pod).startswith(f"{names.WORKER.lower()}-")][:MOST_WORKERS]
        named = {label_of(pod): pod["metadata"]["name"] for pod in workers}
        logs = await read_trainings(self.client.api, self.ref.namespace, named, 1)
        if text := gang_stall({worker: log.stall for worker, log in logs.items()}):
            self.log.warning("%s %s", self.ref.title, text)
