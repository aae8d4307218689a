"""Waiting for a whole Airflow to get somewhere, which takes it seconds, and on a busy machine more."""

import threading
from collections.abc import Callable
from typing import Any

import tenacity
from waiting import SECONDS

_LOOK = 0.3

given_up = threading.Event()
"""Set when the test run ends early: nothing is waited for any longer."""


def eventually(check: Callable[[], Any]) -> Any:
    """Call until it returns something true; fails with its last answer or error in the end."""
    for attempt in tenacity.Retrying(
        stop=tenacity.stop_after_delay(SECONDS) | tenacity.stop_when_event_set(given_up),
        wait=tenacity.wait_fixed(_LOOK),
        sleep=tenacity.sleep_using_event(given_up),
        reraise=True,
    ):
        with attempt:
            found = check()
            assert found, f"still {found!r}"
    return found
