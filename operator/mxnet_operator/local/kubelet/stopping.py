"""Stop request that interrupts waits."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 - not an error: it ends what is being prepared
    """A stop was requested during a wait."""


class Stop:
    """Stop request; it ends every wait under `unless`."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def requested(self) -> bool:
        """Whether a stop was requested."""
        return self._event.is_set()

    def request(self) -> None:
        """Request a stop, which can't be withdrawn."""
        self._event.set()

    async def unless(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and return its result; cancel it if a stop is requested first.

        Raises:
            Stopped: a stop was requested.
        """
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            task.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)
        if self.requested:  # asked after the last wait, so that whoever goes on at once need not ask again
            raise Stopped
        return task.result()
