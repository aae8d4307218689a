"""Wait for something that happens in this process and that nothing announces."""

import asyncio

SECONDS = 120


async def until(holds):
    """Return once `holds()` is true; fails after two minutes."""
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
