"""Reading of workers' logs side by side: a log that doesn't come, as from a dead node, holds up none of the others."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from mxnet_operator.kube.errors import KubeError

READ_SECONDS: Final = 5.0
"""Seconds that the last lines of one worker's log may take."""

T = TypeVar("T")


async def read_each(
    workers: Iterable[str], read: Callable[[str], Awaitable[T]], *, seconds: float = READ_SECONDS
) -> dict[str, T]:
    """Read something of each worker at the same time, for so many seconds each; those that can't be read are left out.

    What `gang_stall` makes of the last lines is where the workers stand.
    """

    async def one(worker: str) -> tuple[T] | None:
        try:
            async with asyncio.timeout(seconds):
                return (await read(worker),)
        except (KubeError, TimeoutError):
            return None

    workers = list(workers)
    found = await asyncio.gather(*(one(worker) for worker in workers))
    return {worker: each[0] for worker, each in zip(workers, found, strict=True) if each is not None}


__all__ = ["READ_SECONDS", "read_each"]
