"""Notification of tasks that wait for a change."""

import asyncio


class Changes:
    """Change notification: `wait` returns at the next `ring`; check first, then wait, with no await in between."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake every task in `wait`."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self) -> None:
        """Wait for the next ring."""
        await self._event.wait()
