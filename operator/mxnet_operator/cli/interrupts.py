"""Ctrl-C and SIGTERM while a command waits: the first starts an orderly end, the second exits at once."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine, Iterator
from typing import Any

from mxnet_operator.cli.errors import Exit

CODES = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED, signal.SIGHUP: Exit.TERMINATED}


@contextlib.contextmanager
def first_signal() -> "Iterator[asyncio.Future[Exit]]":
    """Yield a future with the exit code of the first signal; a second signal exits the process at once.

    A signal that is ignored stays so: `nohup` has SIGHUP ignored, a shell's script the SIGINT of what it puts behind.
    """
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[Exit] = loop.create_future()

    def arrived(code: Exit) -> None:
        if asked.done():
            os._exit(code)
        asked.set_result(code)

    heard = [number for number in CODES if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, arrived, CODES[number])
    try:
        yield asked
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


async def unless_interrupted(work: Coroutine[Any, Any, Exit]) -> Exit:
    """Run `work` and return its exit code; the first signal cancels it, and its exit code is returned instead."""
    with first_signal() as interrupted:
        task = asyncio.create_task(work)
        await asyncio.wait({task, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return interrupted.result()
