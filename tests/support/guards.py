"""Ends asynchronous tests that hang: an event loop may swallow pytest-timeout's signal, never a cancellation."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from waiting import SECONDS

_AT_MOST = 3 * SECONDS
"""For one test: a wait that has failed has been said by its own guard long before."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Guard each coroutine; a mark `timeout` says how long, as it does for other tests."""
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            mark = item.get_closest_marker("timeout")
            item.obj = _guarded(item.obj, float(mark.args[0]) if mark and mark.args else _AT_MOST)


def _guarded(test: Callable[..., Awaitable[None]], seconds: float) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def guarded(*args: Any, **kwargs: Any) -> None:
        guard = asyncio.timeout(seconds)
        try:
            async with guard:
                await test(*args, **kwargs)
        except TimeoutError:
            if guard.expired():
                pytest.fail(f"it hung for {seconds:g} s: cancelled")
            raise

    return guarded
