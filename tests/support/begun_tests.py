"""Tests that wait most of the time are begun together, each in a thread of its own, some at once.

To pytest each is a test like any other: its turn comes, and it waits for its thread. So a test's own fixtures are those
that it has in its turn; the thread has what `world` is for it, and the values of its parameters.

A test marked `alone` runs in its turn, when the others have ended. One that is tried again does so beside them.
"""

import concurrent.futures
import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

import pytest
from waiting import given_up


class BegunTests:
    """The tests, from their beginning to the end of the last.

    Args:
        items: The tests; each has an argument `world`, and beside it only parameters if it is not marked `alone`.
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
        self._begun = {item.nodeid: self._threads.submit(self._run, item) for item in items if not is_alone(item)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        given_up.set()
        self._threads.shutdown(cancel_futures=True)
        given_up.clear()

    @contextlib.contextmanager
    def turn(self, item: pytest.Function) -> Iterator[Any]:
        """What `world` is for a test in its turn: what has become of it, or where it runs only now, its world."""
        if is_alone(item):
            concurrent.futures.wait(self._begun.values())
        elif getattr(item, "execution_count", 1) == 1:
            yield self._begun[item.nodeid]
            return
        with self._world_for(item) as world:
            yield world

    def _run(self, item: pytest.Function) -> None:
        callspec = getattr(item, "callspec", None)
        wanted = inspect.signature(item.obj).parameters.keys() - {"world"}
        parameters = {name: value for name, value in (callspec.params if callspec else {}).items() if name in wanted}
        with self._world_for(item) as world:
            item.obj(world=world, **parameters)


def is_alone(item: pytest.Item) -> bool:
    """Whether a test runs when the others have ended."""
    return item.get_closest_marker("alone") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """In place of calling a test that was begun already: wait for it."""
    begun = pyfuncitem.funcargs.get("world")
    if not isinstance(begun, concurrent.futures.Future):
        return None
    begun.result()
    return True
