"""Notification of tasks that wait for a change."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Changes:
    """Change notification: check first, then call `wait`, with no await in between."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake every task in `wait`."""
        self._event.set()
        self._event = asyncio.Event()

    def wait(self) -> Coroutine[Any, Any, object]:
        """Wait for the next ring after this call, even where a task that was made of it begins to run later."""
        return self._event.wait()
