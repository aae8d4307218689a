"""Ctrl-C and SIGTERM while a command waits: the first starts an orderly end, the second exits at once."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar

from mxnet_operator.cli.errors import Exit

T = TypeVar("T")

CODES = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED, signal.SIGHUP: Exit.TERMINATED}

_SAME_SECONDS: Final = 0.5
"""Seconds after a signal in which another one is the same again: timeout(1) signals its child, then its whole group."""
_STDIN: Final = 0

_handlers: list[Callable[[Exit], None]] = []
"""Handlers of the `first_signal` blocks that are open, the innermost last, which alone gets signals."""


@contextlib.contextmanager
def first_signal(clock: Callable[[], float] | None = None) -> "Iterator[asyncio.Future[Exit]]":
    """Yield a future with the exit code of the first signal; a second signal exits the process at once.

    A signal that is ignored stays so: `nohup` has SIGHUP ignored, a shell's script the SIGINT of what it puts behind.
    """
    loop = asyncio.get_running_loop()
    now = clock or loop.time
    asked: asyncio.Future[Exit] = loop.create_future()
    first_at = 0.0

    def arrived(code: Exit) -> None:
        nonlocal first_at
        if not asked.done():
            first_at = now()
            asked.set_result(code)
        elif now() - first_at >= _SAME_SECONDS:
            os._exit(code)

    heard = [number for number in CODES if signal.getsignal(number) is not signal.SIG_IGN]
    _handlers.append(arrived)
    for number in heard:
        loop.add_signal_handler(number, _to_innermost, CODES[number])
    try:
        yield asked
    finally:
        _handlers.pop()
        for number in heard if not _handlers else ():
            loop.remove_signal_handler(number)


def _to_innermost(code: Exit) -> None:
    _handlers[-1](code)


@contextlib.asynccontextmanager
async def beside(*work: Coroutine[Any, Any, T]) -> AsyncIterator[list[asyncio.Task[T]]]:
    """Run coroutines as tasks for the length of the body, and cancel what is left of them."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def unless_interrupted(work: Coroutine[Any, Any, Exit]) -> Exit:
    """Run `work` and return its exit code; the first signal cancels it, and its exit code is returned instead."""
    with first_signal() as interrupted:
        async with beside(work) as (task,):
            await asyncio.wait({task, interrupted}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
        return interrupted.result()


def can_ask() -> bool:
    """Whether a user sees stderr and types at stdin: both are terminals, and this process is in the foreground."""
    try:
        return os.isatty(_STDIN) and sys.stderr.isatty() and os.tcgetpgrp(_STDIN) == os.getpgrp()
    except OSError:
        return False


async def typed_line() -> str | None:
    """Wait for the line that the user types; empty at the end of the input, None for a signal."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        loop.remove_reader(_STDIN)
        line.set_result(os.read(_STDIN, 1024))

    with first_signal() as interrupted:
        loop.add_reader(_STDIN, read)
        try:
            either: set[asyncio.Future[Any]] = {line, interrupted}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            loop.remove_reader(_STDIN)
    return line.result().decode("utf-8", "replace").strip() if line.done() else None
