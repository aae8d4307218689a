"""How long tests wait, and for something that happens and that nothing announces."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
import tenacity

T = TypeVar("T")

SECONDS = int(os.environ.get("MXJOB_TEST_PATIENCE") or (300 if os.environ.get("CI") else 120))
"""A guard, for what comes in seconds on an idle machine: a test that passes never meets it. What is red is so sooner
where somebody waits for it than in CI, whose machines may be busy with others.
"""

_PATIENT_TESTS = 3
_vain: list[str] = []

given_up = threading.Event()
"""Set when the test run ends early: nothing is waited for any longer."""


def patience() -> float:
    """How many seconds to wait now: a quarter of SECONDS once three tests of this process have waited in vain.

    The run is red by then, and one broken rule should not cost a guard for each test that meets it.
    """
    return SECONDS if len(_vain) < _PATIENT_TESTS else SECONDS / 4


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the tests that have waited in vain."""
    if report.failed and report.duration >= patience():
        _vain.append(report.nodeid)


def eventually(look: Callable[[], Any], *, every: float = 0.1) -> Any:
    """Look until there is something true to see, and return it; fails with the last look's answer or error.

    A look that fails by `pytest.fail` is the last one: it says that what is waited for can't come any more.
    """
    for attempt in tenacity.Retrying(
        stop=tenacity.stop_after_delay(patience()) | tenacity.stop_when_event_set(given_up),
        wait=tenacity.wait_fixed(every),
        sleep=tenacity.sleep_using_event(given_up),
        reraise=True,
    ):
        with attempt:
            found = look()
            assert found, f"still {found!r}"
    return found


async def until(holds: Callable[[], object]) -> None:
    """Return once `holds()` is true."""
    async with asyncio.timeout(patience()):
        while not holds():  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)


async def while_runs(party: "asyncio.Task[None] | None", what: str, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns, which waits for what only the party can bring about; fails as soon as that has ended."""
    waiting = asyncio.ensure_future(work)
    try:
        await asyncio.wait({waiting, party} if party is not None else {waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done() and party is not None:
            end = "was cancelled" if party.cancelled() else repr(party.exception())
            pytest.fail(f"{what} has ended: {end}")
        return await waiting
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
