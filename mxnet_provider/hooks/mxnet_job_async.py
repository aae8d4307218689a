"""The hook through which Airflow's triggerer watches MXJobs: asynchronous, shared connections, no blocking call."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from airflow.providers.cncf.kubernetes.hooks.kubernetes import AsyncKubernetesHook
from asgiref.sync import sync_to_async

from mxnet_provider.hooks.defined_connection import DefinedConnectionHook
from mxnet_provider.hooks.job_client import REPLY_SECONDS, AsyncJobClient

_CONNECTIONS: Final = 100
"""To one API server, for all triggers: each request of a poll needs one for milliseconds."""


@dataclass
class _Shared:
    """Connections of all triggers on one event loop: of their own, each would hold 256 KiB of asyncio's TLS buffers."""

    connector: aiohttp.TCPConnector
    users: int = 0


_shared: Final[dict[asyncio.AbstractEventLoop, _Shared]] = {}


class MXNetJobAsyncHook(AsyncJobClient, DefinedConnectionHook, AsyncKubernetesHook):
    """MXJobs of one cluster, over a connection of type `kubernetes`, for use as an asynchronous context.

    The Airflow connection is looked up once on entering, and again only when the server answers 401.

    Args:
        args: As for Airflow's AsyncKubernetesHook.
        say: Called with what a user should know about the connection. A trigger passes its own log: of a hook's nothing
            reaches the task's.
        kwargs: As for Airflow's AsyncKubernetesHook: `kubernetes_conn_id`, `in_cluster`, `config_file`,
            `cluster_context`.
    """

    user_agent = "mxnet-provider (trigger)"
    connect_seconds = REPLY_SECONDS  # Others may hold all connections, such as for logs on a node that doesn't answer.

    def __init__(self, *args: Any, say: Callable[[str], None] | None = None, **kwargs: Any) -> None:
        AsyncKubernetesHook.__init__(self, *args, **kwargs)
        AsyncJobClient.__init__(self, self, say or self.log.info)

    @contextlib.asynccontextmanager
    async def _connector(self) -> AsyncIterator[aiohttp.TCPConnector]:
        """Lend the connections of this event loop; whoever leaves last closes them."""
        loop = asyncio.get_running_loop()
        shared = _shared.get(loop)
        if shared is None:
            shared = _shared[loop] = _Shared(aiohttp.TCPConnector(limit=0, limit_per_host=_CONNECTIONS))
        shared.users += 1
        try:
            yield shared.connector
        finally:
            shared.users -= 1
            if not shared.users:
                del _shared[loop]
                await shared.connector.close()

    async def _connection_extra(self) -> dict[str, Any]:
        extra: dict[str, Any] = await sync_to_async(lambda: self.conn_extras)()  # Airflow's own way: answers need it
        return extra
