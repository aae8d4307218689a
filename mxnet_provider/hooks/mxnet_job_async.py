"""The hook through which Airflow's triggerer watches MXJobs: asynchronous, shared connections, no blocking call."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from airflow.providers.cncf.kubernetes.hooks.kubernetes import AsyncKubernetesHook
from airflow.providers.common.compat.sdk import AirflowNotFoundException
from asgiref.sync import sync_to_async

from mxnet_operator.kube.credentials import Credentials
from mxnet_provider.exceptions import AirflowUnreachableError
from mxnet_provider.hooks.defined_connection import require_undefined
from mxnet_provider.hooks.job_client import REPLY_SECONDS, AsyncJobClient

_CONNECTIONS: Final = 100
"""To one API server, for all triggers: each request of a poll needs one for milliseconds."""


@dataclass
class _Shared:
    """Connections of all triggers on one event loop: of their own, each would hold 256 KiB of asyncio's TLS buffers."""

    connector: aiohttp.TCPConnector
    users: int = 0


_shared: Final[dict[asyncio.AbstractEventLoop, _Shared]] = {}


class MXNetJobAsyncHook(AsyncJobClient, AsyncKubernetesHook):
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

    async def _credentials(self, *, anew: bool) -> Credentials:
        if anew:
            self._extras = None
        return await super()._credentials(anew=anew)

    async def _connection_extra(self) -> dict[str, Any]:
        # In a task of its own: asgiref drops the message of a cancellation, by which Airflow 3.3 knows a user's.
        return await asyncio.shield(asyncio.create_task(self._read_extra()))

    async def _read_extra(self) -> dict[str, Any]:
        """Read it by Airflow's own hook, whose questions don't wait for other triggers' where Airflow is asynchronous.

        Raises:
            AirflowUnreachableError: Airflow could not be asked for it.
        """
        is_known = self._extras is not None
        try:
            extra: dict[str, Any] = await self.get_conn_extras()
            if not (is_known or extra) and self.conn_id:
                await sync_to_async(require_undefined)(self.conn_id)
        except AirflowNotFoundException:
            await sync_to_async(require_undefined)(str(self.conn_id))
            raise
        except AirflowUnreachableError:
            self._extras = None
            raise
        return extra
