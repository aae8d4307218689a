"""Supervision of a process's tasks: a task that raises is restarted after a back-off."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from mxnet_operator.kube.backoff import Backoff

_BACKOFF: Final = Backoff(first=1.0, longest=60.0)
_RAN_WELL: Final = 300.0
"""Seconds of running after which earlier failures no longer count."""

log = logging.getLogger(__name__)


async def keep_running(
    name: str,
    run: Callable[[], Awaitable[None]],
    *,
    on_crash: Callable[[str], None],
    backoff: Backoff = _BACKOFF,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run until it returns or is cancelled; run it again, after a back-off, whenever it raises.

    An exception is a bug: it is logged with its traceback, and `on_crash` is called with the name, for metrics.
    """
    failures = 0
    while True:
        began = clock()
        try:
            await run()
        except Exception:
            failures = 1 if clock() - began > _RAN_WELL else failures + 1
            delay = backoff.delay(failures)
            log.exception("%s met an unexpected error, which is a bug: please report it; again in %.1f s", name, delay)
            on_crash(name)
            await asyncio.sleep(delay)
        else:
            return
