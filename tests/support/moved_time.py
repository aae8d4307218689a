"""Event loops whose time moves on by itself while nothing happens: minutes of waiting take milliseconds."""

import asyncio
import math
import selectors
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

_QUIET = 0.002
"""Seconds without an event of a socket after which nothing is under way on loopback."""
_exact = time.monotonic


class MovedClock:
    """Time of several loops, each in a thread of its own: it moves on when all of them wait for their next timer."""

    def __init__(self) -> None:
        self.moved = 0.0
        self._lock = threading.Lock()
        self._loops: set[MovedLoop] = set()
        self._timers: dict[MovedLoop, float] = {}
        """Next timer of the loops that have nothing else to wait for since one of them was busy."""
        self.callers = 0
        """Blocking calls in threads, each of which waits in a loop of its own, or computes while it has none."""

    def time(self) -> float:
        return _exact() + self.moved

    def loop(self) -> "MovedLoop":
        """Make a loop, as `asyncio.new_event_loop` does."""
        return MovedLoop(self)

    def add(self, loop: "MovedLoop") -> None:
        with self._lock:
            self._loops.add(loop)

    def remove(self, loop: "MovedLoop") -> None:
        with self._lock:
            self._loops.discard(loop)
            self._timers.clear()

    def busy(self) -> None:
        with self._lock:
            self._timers.clear()

    def quiet(self, loop: "MovedLoop", timer: float) -> None:
        """Note that a loop waits for a timer; the time moves where every loop has, this one twice in a row."""
        with self._lock:
            is_second = loop in self._timers
            self._timers[loop] = timer
            first = min(self._timers.values())
            if (
                is_second
                and self._timers.keys() == self._loops
                and first < math.inf
                and len(self._loops) > self.callers
            ):
                self.moved += max(first - self.time(), 0.0)
                self._timers.clear()


class _Selector(selectors.DefaultSelector):
    loop: "MovedLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        clock = self.loop.clock
        if timeout is not None and timeout <= _QUIET:
            clock.busy()
            return super().select(timeout)
        found = super().select(_QUIET)
        if found or self.loop.threads:
            clock.busy()
        else:
            clock.quiet(self.loop, math.inf if timeout is None else clock.time() + timeout - _QUIET)
        return found


class MovedLoop(asyncio.SelectorEventLoop):
    """Has the time of its clock, which stands while a thread works for the loop."""

    def __init__(self, clock: MovedClock) -> None:
        self.clock, self.threads = clock, 0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def run_forever(self) -> None:
        self.clock.add(self)
        try:
            super().run_forever()
        finally:
            self.clock.remove(self)

    def time(self) -> float:
        return self.clock.time()

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        self.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: object) -> None:
        self.threads -= 1


def _run_in(clock: MovedClock) -> Any:
    def run(main: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=clock.loop) as runner:
            return runner.run(main)

    return run


def run_in_moved_time(coroutine: Coroutine[Any, Any, T], monkeypatch: pytest.MonkeyPatch) -> T:
    """Run a coroutine in time that moves on; so do the loops of other threads, and `time.monotonic`."""
    clock = MovedClock()
    with asyncio.Runner(loop_factory=clock.loop) as runner:
        monkeypatch.setattr(time, "monotonic", clock.time)
        monkeypatch.setattr(asyncio, "new_event_loop", clock.loop)
        monkeypatch.setattr(asyncio, "run", _run_in(clock))
        try:
            return runner.run(coroutine)
        finally:
            monkeypatch.undo()
