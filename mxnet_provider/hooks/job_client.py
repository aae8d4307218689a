"""The job client over an Airflow connection."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self

import aiohttp
from airflow.providers.cncf.kubernetes.hooks.kubernetes import KubernetesHook
from airflow.providers.common.compat.sdk import AirflowException
from kubernetes import client
from requests.utils import should_bypass_proxies

from mxnet_operator.client.job_client import JobClient
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import Credentials, from_configuration
from mxnet_provider.hooks import kube_configuration

REPLY_SECONDS: Final = 30.0
_CONFIGURATION: Final = "_loaded_configuration"
"""Attribute of a hook: a worker asks by many clients of one hook, and a login program is run once for all of them."""


class AsyncJobClient(JobClient):
    """Jobs of the cluster of a hook's Airflow connection, for use as an asynchronous context.

    Credentials that the server no longer accepts, or authorities that no longer vouch for it, are read anew once.
    """

    user_agent: ClassVar[str] = "mxnet-provider (task)"
    """What asks, in the audit log of the API server: a task or the trigger that waits for it."""
    connect_seconds: ClassVar[float] = 10.0
    """How long a request may wait for a connection."""

    def __init__(self, hook: KubernetesHook, say: Callable[[str], None]) -> None:
        JobClient.__init__(self)
        self._hook = hook
        self._say = say
        """Called with what a user should know about the connection."""
        self._held = contextlib.AsyncExitStack()

    def _connector(self) -> contextlib.AbstractAsyncContextManager[aiohttp.TCPConnector | None]:
        """Return the connections to share with other clients; None for the client's own."""
        return contextlib.nullcontext()

    async def __aenter__(self) -> Self:
        credentials = await self._credentials(anew=False)
        # A task follows logs, each on a connection of its own.
        api = Client(
            credentials,
            connect_timeout=self.connect_seconds,
            request_timeout=REPLY_SECONDS,
            attempts=1,
            user_agent=self.user_agent,
            connector=await self._held.enter_async_context(self._connector()),
        )
        self._open = await self._held.enter_async_context(api)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._open = None
        await self._held.aclose()

    async def _credentials(self, *, anew: bool) -> Credentials:
        kept = vars(self._hook)
        if anew:
            kept.pop("conn_extras", None)
            kept.pop(_CONFIGURATION, None)
        if (found := kept.get(_CONFIGURATION)) is None:
            found = kept[_CONFIGURATION] = await self._configuration()
        # The proxy of the Kubernetes client's configuration, by the rule of its own requests.
        is_direct = not found.proxy or should_bypass_proxies(found.host, found.no_proxy or "")
        proxy = None if is_direct else found.proxy
        return await asyncio.to_thread(
            from_configuration, found, namespace="default", proxy=proxy, reload=self._renewed
        )

    async def _configuration(self) -> client.Configuration:
        """Return the cluster's address and credentials."""
        hook, extra = self._hook, await self._connection_extra()
        own = {"kube_config": getattr(hook, "config_dict", None), "disable_verify_ssl": hook.disable_verify_ssl}
        try:
            return await asyncio.to_thread(
                kube_configuration.load,
                extra | {name: value for name, value in own.items() if value},
                in_cluster=hook.in_cluster,
                config_file=hook.config_file,
                cluster_context=hook.cluster_context,
            )
        except AirflowException as e:
            raise AirflowException(f"Connection {hook.conn_id}: {e}") from e

    async def _connection_extra(self) -> dict[str, Any]:
        return await asyncio.to_thread(lambda: dict(self._hook.conn_extras))

    async def _renewed(self) -> Credentials:
        self._say("The API server no longer accepts the credentials, or is no longer trusted; reading them anew.")
        return await self._credentials(anew=True)
