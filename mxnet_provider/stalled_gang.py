"""Where all workers of a job stand still, in the log of its task."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mxnet_operator.api import names
from mxnet_operator.client.stalls import read_trainings
from mxnet_operator.readers.pods import has_log, label_of
from mxnet_operator.readers.worker_logs import MOST_WORKERS, gang_stall, stall_in
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.replicas import in_order

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.job_client import AsyncJobClient

_SETTLE_SECONDS: Final = 10.0
"""By then the other workers have written where they stand."""
_QUIET_SECONDS: Final = 320.0
"""Seconds without a line after which another worker may have written so: this one may have left early."""


class StalledGang:
    """Warns once where each worker stands still, after the log of one has said so, or has been quiet."""

    def __init__(self, client: "AsyncJobClient", ref: JobRef, log: "Logger", clock: Callable[[], float]) -> None:
        self._client = client
        self._ref = ref
        self._log = log
        self._clock = clock
        self._look_at: float | None = None

    def read(self, line: str) -> None:
        """Take a line of the log."""
        self._look_at = self._clock() + (_SETTLE_SECONDS if stall_in(line) else _QUIET_SECONDS)

    async def poll(self) -> None:
        """Warn, if it is time to."""
        if self._look_at is None or self._clock() < self._look_at:
            return
        self._look_at = None
        pods = [pod for pod in in_order(await self._client.replica_pods(self._ref)) if has_log(pod)]
        workers = [pod for pod in pods if label_of(pod).startswith(f"{names.WORKER.lower()}-")][:MOST_WORKERS]
        named = {label_of(pod): pod["metadata"]["name"] for pod in workers}
        logs = await read_trainings(self._client.api, self._ref.namespace, named, 1)
        if text := gang_stall({worker: log.stall for worker, log in logs.items()}):
            self._log.warning("%s %s", self._ref.title, text)
