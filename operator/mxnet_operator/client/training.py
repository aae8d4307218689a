"""Where the training of a job is, from its command and the newest lines of its workers' logs, read side by side."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.conditions import RUNNING, job_state
from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.client.jobs import main_replica, pod_name, pod_spec, replicas
from mxnet_operator.client.pod_log import PodLog
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.readers.pods import label_of
from mxnet_operator.readers.training_log import TrainingLog, epochs_asked_for
from mxnet_operator.readers.worker_logs import MOST_WORKERS, slow_workers, stall_text, stalled_workers

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

READ_SECONDS: Final = 5.0
"""Seconds that the last lines of one worker's log may take."""
_BYTES: Final = 1 << 12
_BYTES_OF_A_LINE: Final = 1 << 10
"""Bytes that are read for each line, and beside: a log without newlines must not fill the memory."""

_LINES: Final = 500
_MOST_JOBS: Final = 20
_QUIET: Final = 300
"""Seconds without a line after which another worker may have said that it stands still."""
_LINES_OF_WORKERS: Final = 100


async def read_trainings(
    client: "Client", namespace: str, pods: Mapping[str, str], lines: int
) -> dict[str, TrainingLog]:
    """Read the last lines of workers' logs, by the names of their pods; those that can't be read are left out."""
    found = await _read_each(client, namespace, pods, lines)
    return {worker: training for worker, (training, _) in found.items()}


async def _read_each(
    client: "Client", namespace: str, pods: Mapping[str, str], lines: int
) -> dict[str, tuple[TrainingLog, float]]:
    """Read all at the same time: a log that doesn't come, as from a dead node, holds up none of the others."""

    async def read(pod: str) -> tuple[TrainingLog, float] | None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await read_training(client, namespace, pod, lines)
        except (KubeError, TimeoutError):
            return None

    found = await asyncio.gather(*map(read, pods.values()))
    return {worker: each for worker, each in zip(pods, found, strict=True) if each is not None}


async def read_training(
    client: "Client", namespace: str, pod: str, lines: int, training: TrainingLog | None = None
) -> tuple[TrainingLog, float]:
    """Read the last lines of a log, into `training` if there is one.

    Returns also when the newest was written, in seconds since the epoch; 0 where that isn't known. A limit cuts off the
    end of very long lines: the last line, which says where the worker stands, is read then too.

    Raises:
        KubeError: the log can't be read.
    """
    log = PodLog(client, namespace, pod)
    training = training or TrainingLog(lambda: log.cursor.moment)
    while True:
        async with contextlib.aclosing(log.lines(tail=lines, limit=_BYTES + lines * _BYTES_OF_A_LINE)) as found:
            async for line in found:
                for part in line.splitlines():
                    training.take(part)
        if lines == 1 or not log.is_cut:
            return training, log.cursor.moment
        log, lines = PodLog(client, namespace, pod), 1


def epochs_wanted(job: dict[str, Any]) -> int | None:
    """Return the number of epochs that the main replica's command asks for; None where it doesn't."""
    return epochs_asked_for(names.main_container(pod_spec(job, main_replica(job)).get("containers")))


async def main_training(client: "Client", job: dict[str, Any]) -> tuple[TrainingLog, float]:
    """Read the newest lines of the main replica's log, as far as the server allows.

    Returns also when the last of them was written, in seconds since the epoch; 0 where that isn't known.
    """
    pod, namespace = pod_name(job["metadata"]["name"], main_replica(job)), job["metadata"]["namespace"]
    found = await _read_each(client, namespace, {"": pod}, _LINES)
    training, written = found.get("", (TrainingLog(), 0.0))
    training.epochs_wanted = epochs_wanted(job)
    return training, written


async def _training_so_far(client: "Client", job: dict[str, Any]) -> TrainingLog:
    """Read the log of the main replica; where it stands still or is quiet, those of all workers."""
    training, written = await main_training(client, job)
    if training.stall or 0 < written < time.time() - _QUIET:
        await compare_workers(client, job, training)
    return training


async def compare_workers(client: "Client", job: dict[str, Any], training: TrainingLog) -> dict[str, TrainingLog]:
    """Read the newest lines of the first workers' logs, and note in `training` what they show together.

    That is where all of them stand, if one stands still, and which are slow. Returns the logs by replica.
    """
    kind, _, _ = main_replica(job).rpartition("-")
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    workers = [each for each in replicas(job) if each.startswith(f"{kind}-")][:MOST_WORKERS]
    pods = {worker: pod_name(name, worker) for worker in workers}
    logs = await read_trainings(client, namespace, pods, _LINES_OF_WORKERS)
    if logs:
        training.stalled = stalled_workers({worker: log.stall for worker, log in logs.items()})
        training.stall = stall_text(training.stalled)
    speeds = {worker: speed for worker, log in logs.items() if (speed := log.usual_speed()) is not None}
    training.slow_workers = slow_workers(speeds, {})
    if training.slow_workers:
        with contextlib.suppress(KubeError):
            found = await JobClient(client).replica_pods(JobRef.of(job))
            nodes = {label_of(pod): pod["spec"].get("nodeName", "") for pod in found}
            training.slow_workers = slow_workers(speeds, nodes)
    return logs


async def running_trainings(client: "Client", jobs: list[dict[str, Any]]) -> dict[str, TrainingLog]:
    """Read how far the trainings of running jobs are, by the jobs' uids; of the twenty newest, as each is a request."""
    running = [job for job in jobs if job_state(job) == RUNNING]
    running.sort(key=lambda job: str(job["metadata"].get("creationTimestamp")), reverse=True)
    found = await asyncio.gather(*(_training_so_far(client, job) for job in running[:_MOST_JOBS]))
    return {job["metadata"]["uid"]: training for job, training in zip(running, found, strict=False)}
