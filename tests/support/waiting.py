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
"""The limit of what takes seconds on an idle machine: a process that starts or ends, a pod that runs, what a controller
makes of a job. Limits guard against what hangs: a test that passes never meets one. What is red is so sooner where
somebody waits for it than in CI, whose machines may be busy with others.
"""
MOMENT = SECONDS // 2
"""The limit of what this process does alone, in milliseconds: an event, a queue, an API server within it."""
MINUTES = SECONDS * 2
"""The limit of what takes up to a minute: a training by MXNet or TVM, a rollout on the node, a page in a browser.

It leaves room within pytest's own limit for a test, whose error says only where it waited.
"""
DOWNLOAD = 600
"""The limit of packages that come from a registry."""
BUILD = 3600
"""The limit of programs that are built by Go, and of images."""

_PATIENT_TESTS = 3
_vain: list[str] = []
_moment_over = threading.Event()

given_up = threading.Event()
"""Set when the test run ends early: nothing is waited for any longer."""


def patience(limit: float | None = None) -> float:
    """How many seconds to wait now: the limit (SECONDS), or a quarter once three tests of this process waited in vain.

    The run is red by then, and one broken rule should not cost a limit for each test that meets it.
    """
    limit = SECONDS if limit is None else limit
    return limit if len(_vain) < _PATIENT_TESTS else limit / 4


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the tests that have waited in vain."""
    if report.failed and (_moment_over.is_set() or report.duration >= patience()):
        _vain.append(report.nodeid)
    _moment_over.clear()


def eventually(look: Callable[[], Any], *, every: float = 0.1, within: float | None = None) -> Any:
    """Look until there is something true to see, and return it; fails with the last look's answer or error.

    A look that fails by `pytest.fail` is the last one: it says that what is waited for can't come any more.
    """
    for attempt in tenacity.Retrying(
        stop=tenacity.stop_after_delay(patience(within)) | tenacity.stop_when_event_set(given_up),
        wait=tenacity.wait_fixed(every),
        sleep=tenacity.sleep_using_event(given_up),
        reraise=True,
    ):
        with attempt:
            found = look()
            assert found, f"still {found!r}"
    return found


async def until(holds: Callable[[], object], *, within: float = MOMENT) -> None:
    """Return once `holds()` is true."""
    try:
        async with asyncio.timeout(patience(within)):
            while not holds():  # noqa: ASYNC110 - there is no event to await
                await asyncio.sleep(0.01)
    except TimeoutError:
        _moment_over.set()
        raise


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
