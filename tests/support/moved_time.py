"""An event loop whose time moves on by itself while nothing happens: minutes of waiting take milliseconds."""

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

_QUIET = 0.002
"""Seconds without an event of a socket after which nothing is under way on loopback."""
_exact = time.monotonic


class _Selector(selectors.DefaultSelector):
    loop: "MovedLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= _QUIET:
            return super().select(timeout)
        found = super().select(_QUIET)
        if found or timeout is None or self.loop.threads:
            return found
        self.loop.moved += timeout
        return []


class MovedLoop(asyncio.SelectorEventLoop):
    """Moves its time to the next timer whenever its sockets are quiet and no thread works for it."""

    def __init__(self) -> None:
        self.moved, self.threads = 0.0, 0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return _exact() + self.moved

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        self.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: object) -> None:
        self.threads -= 1


def run_in_moved_time(coroutine: Coroutine[Any, Any, T], monkeypatch: pytest.MonkeyPatch) -> T:
    """Run a coroutine on a `MovedLoop`, whose time `time.monotonic` is meanwhile."""
    with asyncio.Runner(loop_factory=MovedLoop) as runner:
        monkeypatch.setattr(time, "monotonic", runner.get_loop().time)
        try:
            return runner.run(coroutine)
        finally:
            monkeypatch.undo()
