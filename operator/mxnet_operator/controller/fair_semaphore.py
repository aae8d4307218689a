"""Fair limit of concurrent requests: a large job does not hold up a small one that came later."""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from typing import Final

IN_FLIGHT: Final = 32
"""Maximum concurrent requests over all jobs."""


class FairSemaphore:
    """Semaphore that is fair over keys: a place that becomes free goes to the key that has waited longest for a turn.

    A key alone may have every place, so one job is as fast as the limit allows. With several, each gets one place in
    turn, however many requests of the others wait: the first request of a job that has just come waits for one reply.
    """

    def __init__(self, limit: int = IN_FLIGHT) -> None:
        self._free = limit
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Waiters by key, in the order of their turns; every key has at least one."""

    @contextlib.asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        await self._take(key)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, key: str) -> None:
        if self._free > 0:  # Then nobody waits.
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._give_back()  # It was given the place, and can't use it.
            raise

    def _give_back(self) -> None:
        while self._waiting:
            key, places = self._waiting.popitem(last=False)
            while places:
                place = places.popleft()
                if not place.done():
                    if places:
                        self._waiting[key] = places  # Its next turn comes after everybody else's.
                    place.set_result(None)
                    return
        self._free += 1
