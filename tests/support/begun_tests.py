"""Tests that wait most of the time are begun together, each in a thread of its own, some at once.

To pytest each is a test like any other: its turn comes, and it waits for its thread. So a test's own fixtures are those
that it has in its turn; the thread has what `world` is for it, and the values of its parameters.
"""

import concurrent.futures
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

import pytest
from waiting import given_up


class BegunTests:
    """The tests, from their beginning to the end of the last.

    Args:
        items: The tests; each has an argument `world`, and beside it only parameters.
        world_for: What a test is given as `world`, for as long as it runs.
        at_once: How many run at once.
    """

    def __init__(
        self,
        items: Sequence[pytest.Function],
        world_for: Callable[[pytest.Function], AbstractContextManager[Any]],
        at_once: int,
    ) -> None:
        self._world_for = world_for
        self._threads = concurrent.futures.ThreadPoolExecutor(at_once, thread_name_prefix="begun")
        self._begun = {item.nodeid: self._threads.submit(self._run, item) for item in items}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        given_up.set()
        self._threads.shutdown(cancel_futures=True)
        given_up.clear()

    def of(self, item: pytest.Function) -> "concurrent.futures.Future[None]":
        """What has become of a test."""
        return self._begun[item.nodeid]

    def wait(self) -> None:
        """Wait until all have ended."""
        concurrent.futures.wait(self._begun.values())

    def _run(self, item: pytest.Function) -> None:
        callspec = getattr(item, "callspec", None)
        wanted = inspect.signature(item.obj).parameters.keys() - {"world"}
        parameters = {name: value for name, value in (callspec.params if callspec else {}).items() if name in wanted}
        with self._world_for(item) as world:
            item.obj(world=world, **parameters)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """In place of calling a test that was begun already: wait for it."""
    begun = pyfuncitem.funcargs.get("world")
    if not isinstance(begun, concurrent.futures.Future):
        return None
    begun.result()
    return True
