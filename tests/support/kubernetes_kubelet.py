"""Our kubelet as a node of a real Kubernetes, whose scheduler binds the pods."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from mxnet_operator.kube.client import MERGE_PATCH, Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import LEASES, NODES
from mxnet_operator.local.apiserver.logs import log_request
from mxnet_operator.local.apiserver.statuses import StatusError
from mxnet_operator.local.kubelet.kubelet import NODE, Kubelet
from mxnet_operator.local.kubelet.logs import Logs

_SECONDS = 10.0
_POLL = 0.05


class KubernetesKubelet(Kubelet):
    """Kubelet that serves its logs over HTTPS and keeps a lease; it needs no scheduler and has no claims."""

    def __init__(self, *args: Any, context: ssl.SSLContext, **options: Any) -> None:
        super().__init__(*args, **options)
        self._context = context
        self._log_server = _LogServer(self.log_source, lambda namespace, name: self._cache.get(f"{namespace}/{name}"))

    async def _node_parts(self) -> tuple[Any, ...]:
        port = await self._log_server.start(self._context)
        return self._node.run(), self._announce(port), keep_lease(self._client, NODE)

    def _admit(self, pod: dict[str, Any]) -> None:
        if pod["spec"]["nodeName"] == NODE:
            super()._admit(pod)

    async def _take_down(self) -> None:
        await super()._take_down()
        await self._log_server.stop()

    async def _announce(self, port: int) -> None:
        """Write the port of the log server on the Node, and wait for the end."""
        status = {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}
        while True:
            try:
                await self._client.patch(NODES.path(name=NODE, subresource="status"), status, MERGE_PATCH)
                await asyncio.Event().wait()
            except ApiError as error:
                if error.code != 404:  # not registered yet
                    raise
            await asyncio.sleep(_POLL)


async def keep_lease(client: Client, node_name: str) -> None:
    """Renew the node's Lease until cancelled; a failed renewal is retried when the next one is due."""
    while True:
        with contextlib.suppress(KubeError):
            await _renew(client, node_name)
        await asyncio.sleep(_SECONDS)


async def _renew(client: Client, node_name: str) -> None:
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec: dict[str, Any] = {
        "holderIdentity": node_name,
        "leaseDurationSeconds": 40,
        "renewTime": time,
    }
    try:
        await client.patch(LEASES.path("kube-node-lease", node_name), {"spec": spec}, MERGE_PATCH)
    except ApiError as error:
        if error.code != 404:
            raise
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node_name, "namespace": "kube-node-lease"},
            "spec": spec,
        }
        await client.create(LEASES.path("kube-node-lease"), lease)


class _LogServer:
    """Log server on loopback with the one path GET /containerLogs/NAMESPACE/POD/CONTAINER.

    `pod` finds a pod by its namespace and name. The TLS context authenticates clients by their certificates.
    """

    def __init__(self, logs: Logs, pod: Callable[[str, str], dict[str, Any] | None]) -> None:
        self._logs = logs
        self._pod = pod
        self._runner: web.AppRunner | None = None

    async def start(self, context: ssl.SSLContext) -> int:
        """Start to listen; returns the port."""
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        port: int = self._runner.addresses[0][1]
        return port

    async def stop(self) -> None:
        """Stop listening, and close the connections of clients that follow a log."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        namespace, name, container = (request.match_info[part] for part in ("namespace", "pod", "container"))
        pod = self._pod(namespace, name)
        if pod is None:
            return web.Response(status=404, text=f'pod "{name}" does not exist')
        try:
            wanted = log_request(pod, {**request.query, "container": container})
        except StatusError as error:
            return web.Response(status=error.code, text=str(error))
        pieces = self._logs.open(pod["metadata"]["uid"], wanted)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):  # nobody reads any more
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
        return response
