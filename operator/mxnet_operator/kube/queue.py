"""Deduplicating work queue with delayed and rate-limited re-adds."""

import asyncio
import heapq
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from mxnet_operator.kube.backoff import Backoff

DEFAULT_BACKOFF: Final = Backoff(first=0.1, longest=60.0)


class QueueObserver:
    """Callbacks for the keys of a work queue, which do nothing here; times are in seconds."""

    def added(self) -> None:
        """Count a key added to the queue."""

    def taken(self, waited: float) -> None:
        """Record how long a key was queued before a worker took it."""

    def finished(self, worked: float) -> None:
        """Record how long a worker processed a key."""

    def retried(self) -> None:
        """Count a key requeued because its reconciliation failed."""


class WorkQueue:
    """Work queue as in controller-runtime, for one event loop; times are seconds on a monotonic clock.

    Keys that are added because something changed come before those that are only looked at again, as in the priority
    queue of controller-runtime.

    A key that is added while a worker processes it is queued again `rest` seconds after the worker calls `done`, so
    that a burst of events costs one further reconciliation; a key that has rested is queued at once. Taking a key drops
    its delayed re-add: the reconciliation decides anew when to requeue it.
    """

    def __init__(
        self,
        backoff: Backoff = DEFAULT_BACKOFF,
        clock: Callable[[], float] = time.monotonic,
        observer: QueueObserver | None = None,
        *,
        rest: float = 0.0,
    ) -> None:
        """Create an empty queue; `backoff` is for `add_rate_limited`."""
        self._backoff = backoff
        self._clock = clock
        self._observer = observer or QueueObserver()
        self._rest = rest
        self._ready: deque[str] = deque()
        self._unhurried: OrderedDict[str, None] = OrderedDict()
        """Queued keys that wait until no other key does."""
        self._wanted: dict[str, float] = {}
        """Keys that are queued or due, and since when."""
        self._working: dict[str, float] = {}
        """Keys that workers process, and since when."""
        self._resting: set[str] = set()
        """Keys that were processed less than `rest` seconds ago."""
        self._failures: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        """Return the number of keys that wait for a worker."""
        return len(self._ready) + len(self._unhurried)

    @property
    def working(self) -> int:
        """Number of keys that workers process."""
        return len(self._working)

    def longest_work(self) -> float:
        """Return the seconds for which the slowest worker has processed its key; 0 where none has one."""
        return self._clock() - min(self._working.values()) if self._working else 0.0

    def add(self, key: str) -> None:
        """Queue the key."""
        if key in self._unhurried:
            del self._unhurried[key]
            self._ready.append(key)
        elif self._want(key):
            self._ready.append(key)
            self._wake_one()

    def add_low_priority(self, key: str) -> None:
        """Queue the key behind all keys that `add` has queued or will queue."""
        if self._want(key):
            self._unhurried[key] = None
            self._wake_one()

    def _want(self, key: str) -> bool:
        """Note that the key is wanted; return whether it is to be queued now."""
        if key in self._wanted:
            return False
        self._wanted[key] = self._clock()
        self._observer.added()
        return key not in self._working and key not in self._resting

    def add_after(self, key: str, delay: float) -> None:
        """Queue the key after `delay` seconds, unless it is queued earlier."""
        if delay <= 0:
            self.add(key)
            return
        due = self._clock() + delay
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._heap, (due, key))
            self._arm()

    def add_rate_limited(self, key: str) -> float:
        """Queue the key again after a back-off for one more failure; returns the seconds until then."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._backoff.delay(failures)
        self.add_after(key, delay)
        self._observer.retried()
        return delay

    def forget(self, key: str) -> None:
        """Reset the failures of a key that was reconciled."""
        self._failures.pop(key, None)

    async def get(self) -> str:
        """Wait for the next key; the caller must call `done` for it."""
        while not len(self):
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake_one()  # it was woken and can't work: somebody else should
                raise
        key = self._ready.popleft() if self._ready else self._unhurried.popitem(last=False)[0]
        now = self._clock()
        self._observer.taken(now - self._wanted.pop(key))
        self._working[key] = now
        self._due.pop(key, None)
        return key

    def done(self, key: str) -> None:
        """Mark a key as processed by its worker."""
        self._observer.finished(self._clock() - self._working.pop(key))
        self._resting.add(key)
        if self._rest:
            asyncio.get_running_loop().call_later(self._rest, self._has_rested, key)
        else:
            self._has_rested(key)

    def _has_rested(self, key: str) -> None:
        self._resting.discard(key)
        if key in self._wanted:
            self._ready.append(key)
            self._wake_one()

    def clear(self) -> None:
        """Drop every key, delay and failure, except keys that workers process: they still call `done`."""
        self._ready.clear()
        self._unhurried.clear()
        self._wanted.clear()
        self._failures.clear()
        self._due.clear()
        self._arm()

    def promote_due(self) -> None:
        """Queue the keys whose delay is over; called by the queue's own timer."""
        now = self._clock()
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
        self._arm()

    def _arm(self) -> None:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            delay = max(self._heap[0][0] - self._clock(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(delay, self.promote_due)

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
