"""Reading of workers' logs side by side: a log that doesn't come, as from a dead node, holds up none of the others."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from mxnet_operator.client.pod_log import PodLog
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.readers.training_log import TrainingLog

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

READ_SECONDS: Final = 5.0
"""Seconds that the last lines of one worker's log may take."""
_BYTES: Final = 1 << 12
_BYTES_OF_A_LINE: Final = 1 << 10
"""Bytes that are read for each line, and beside: a log without newlines must not fill the memory."""

T = TypeVar("T")


async def read_each(workers: Iterable[str], read: Callable[[str], Awaitable[T]]) -> dict[str, T]:
    """Read something of each worker at the same time; what can't be read is left out."""

    async def one(worker: str) -> tuple[T] | None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                return (await read(worker),)
        except (KubeError, TimeoutError):
            return None

    workers = list(workers)
    found = await asyncio.gather(*(one(worker) for worker in workers))
    return {worker: each[0] for worker, each in zip(workers, found, strict=True) if each is not None}


async def read_trainings(
    client: "Client", namespace: str, pods: Mapping[str, str], lines: int
) -> dict[str, TrainingLog]:
    """Read the last lines of workers' logs, by the names of their pods; those that can't be read are left out."""
    found = await read_each(pods, lambda worker: read_training(client, namespace, pods[worker], lines))
    return {worker: training for worker, (training, _) in found.items()}


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
