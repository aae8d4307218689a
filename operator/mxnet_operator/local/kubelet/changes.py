"""Wakes every task that waits for something to change."""

import asyncio


class Changes:
    """A bell: `wait` returns at the next `ring`. Look first, then wait, with no await in between."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Wake all who wait now."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self) -> None:
        """Wait for the next ring."""
        await self._event.wait()
