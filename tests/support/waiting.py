"""How long tests wait, and for something that happens in this process and that nothing announces."""

import asyncio

SECONDS = 300
"""A guard, for what comes in seconds on an idle machine: on however slow a one, a test that passes never meets it."""


async def until(holds):
    """Return once `holds()` is true."""
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
