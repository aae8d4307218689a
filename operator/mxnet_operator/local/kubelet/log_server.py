"""HTTPS server of the kubelet, from which kube-apiserver reads the logs of containers."""

import contextlib
import ssl
from collections.abc import Callable
from typing import Any

from aiohttp import web

from mxnet_operator.local.apiserver.logs import log_request
from mxnet_operator.local.apiserver.statuses import StatusError
from mxnet_operator.local.kubelet.log_source import Logs

_SHUTDOWN_SECONDS = 1.0
"""Seconds that open requests get to end at shutdown; that of a followed log never ends."""


class LogServer:
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
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_SECONDS
        )
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
        pieces = self._logs.open(namespace, name, pod["metadata"]["uid"], container, **wanted.options)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):  # nobody reads any more
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
        return response
