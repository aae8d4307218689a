"""Connection of a trigger: its hook, made without holding up the triggerer's event loop, and what it fails with."""

import asyncio
import contextlib
import importlib
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Final

from mxnet_operator.api.storable import storable_text
from mxnet_operator.client.outage import Outage, Retries
from mxnet_provider.cluster import ClusterConnection
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.hooks.api_errors import message
from mxnet_provider.hooks.defined_connection import AirflowUnreachableError
from mxnet_provider.job.polling import JITTER

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook

_PAUSE: Final = 5.0


@contextlib.asynccontextmanager
async def connected(
    connection: ClusterConnection, say: Callable[[str], None], tolerance: float
) -> "AsyncIterator[MXNetJobAsyncHook]":
    """Return an entered hook.

    Airflow imports triggers on its event loop, and the hook imports the Kubernetes clients: seconds, in which no other
    trigger would run. So that is done in a thread, by the first trigger.

    Args:
        connection: The hook's arguments.
        say: Where the hook reports to.
        tolerance: For how many seconds Airflow may not say what the connection is.
    """
    module = await asyncio.to_thread(importlib.import_module, "mxnet_provider.hooks.mxnet_job_async")
    retries = Retries(Outage(tolerance), first=_PAUSE, longest=_PAUSE, jitter=JITTER)
    async with contextlib.AsyncExitStack() as held:
        while True:
            try:
                hook = await held.enter_async_context(module.MXNetJobAsyncHook(say=say, **connection.arguments()))
                break
            except AirflowUnreachableError as e:
                say(f"{e}. Trying again.")
                await retries.pause_or_raise(e)
        yield hook


@contextlib.contextmanager
def storable_errors(log: "Logger") -> Iterator[None]:
    """Let a trigger fail only with what Airflow's database takes: it stores the whole traceback, causes included.

    Where it rejects that, the triggerer ends, and with it every trigger of every DAG.
    """
    try:
        yield
    except Exception as e:
        log.error("The trigger failed: %s", storable_text(traceback.format_exc()))  # noqa: TRY400 - a log is a file too
        raise MXNetJobError(storable_text(message(e))) from None
