"""How long tests wait, and for something that happens and that nothing announces."""

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import tenacity

SECONDS = int(os.environ.get("MXJOB_TEST_PATIENCE") or (300 if os.environ.get("CI") else 120))
"""A guard, for what comes in seconds on an idle machine: a test that passes never meets it. What is red is so sooner
where somebody waits for it than in CI, whose machines may be busy with others.
"""

given_up = threading.Event()
"""Set when the test run ends early: nothing is waited for any longer."""


def eventually(look: Callable[[], Any], *, every: float = 0.1) -> Any:
    """Look until there is something true to see, and return it; fails with the last look's answer or error."""
    for attempt in tenacity.Retrying(
        stop=tenacity.stop_after_delay(SECONDS) | tenacity.stop_when_event_set(given_up),
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
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
