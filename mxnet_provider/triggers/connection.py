"""How triggers come by their hook without holding up the triggerer's event loop."""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook


@contextlib.asynccontextmanager
async def connected(say: Callable[[str], None], **connection: Any) -> "AsyncIterator[MXNetJobAsyncHook]":
    """An entered hook.

    Airflow imports triggers on its event loop, and the hook imports the Kubernetes clients: seconds, in which no other
    trigger would run. So that is done in a thread, by the first trigger.

    Args:
        say: Where the hook reports to.
        connection: The hook's own arguments.
    """
    module = await asyncio.to_thread(importlib.import_module, "mxnet_provider.hooks.mxnet_job_async")
    async with module.MXNetJobAsyncHook(say=say, **connection) as hook:
        yield hook
