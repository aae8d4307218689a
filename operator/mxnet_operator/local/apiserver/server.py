"""API server over HTTPS on loopback, with token authentication."""

import asyncio
import hmac
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from mxnet_operator.kube.tls import PromptTls
from mxnet_operator.local.apiserver.documents import HEALTH, Documents
from mxnet_operator.local.apiserver.garbage_collection import GarbageCollector
from mxnet_operator.local.apiserver.handlers import Handlers, json_response
from mxnet_operator.local.apiserver.logs import LogSource
from mxnet_operator.local.apiserver.requests import BODY_LIMIT, find_target, no_target
from mxnet_operator.local.apiserver.statuses import NO_SUCH_PATH, StatusError, bad_request
from mxnet_operator.local.apiserver.store import Store

_log = logging.getLogger(__name__)

_SHUTDOWN_SECONDS = 1.0
"""Seconds that open requests get to end at shutdown; that of a followed log never ends."""


class ApiServer:
    """In-memory Kubernetes API server.

    Args:
        crds: CustomResourceDefinition manifests to serve.
        token: What clients must send as their bearer token.
        log_source: Who has the logs of containers; may be set later.
        clock: Gives the time, with its zone.
        history: How many changes of each resource a watch can go back.
    """

    def __init__(
        self,
        crds: Iterable[Mapping[str, Any]],
        token: str,
        log_source: LogSource | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        history: int = 1000,
    ) -> None:
        self.store = Store(crds, clock=clock, history=history)
        self._token = token.encode()
        self._documents = Documents(self.store.catalog)
        self._handlers = Handlers(self.store, log_source)
        self._collector = GarbageCollector(self.store, self._collect_soon)
        self._collecting = False
        self._runner: web.AppRunner | None = None

    @property
    def log_source(self) -> LogSource | None:
        return self._handlers.log_source

    @log_source.setter
    def log_source(self, source: LogSource | None) -> None:
        self._handlers.log_source = source

    async def start(self, ssl_context: ssl.SSLContext, host: str = "127.0.0.1", port: int = 0) -> int:
        """Start to listen; returns the port.

        Raises:
            OSError: The port is taken.
        """
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_route("*", "/{path:.*}", self._handle)
        ssl_context.sslobject_class = PromptTls
        # a client that goes away takes its watches with it at once
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port, ssl_context=ssl_context).start()
        except OSError:
            await self.stop()
            raise
        bound: int = self._runner.addresses[0][1]
        return bound

    async def stop(self) -> None:
        """End every watch cleanly, then stop listening."""
        self._handlers.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except StatusError as error:
            response = json_response(error.status, error.code)
            if error.retry_after:
                response.headers["Retry-After"] = str(error.retry_after)
            return response
        except RecursionError:
            return json_response(bad_request("the body is nested too deeply").status, 400)
        except web.HTTPException:
            raise
        except ConnectionError as error:
            # The client left while it was being answered, or a stream broke off: what follows reaches nobody.
            _log.debug("%s %s: %s", request.method, request.path, error)
            if request.transport is not None:
                request.transport.close()
            return web.Response()
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            failure = StatusError(500, "InternalError", "Internal error occurred: see the log of the local cluster")
            return json_response(failure.status, 500)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.path in HEALTH:
            return web.Response(text="ok")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.encode(errors="surrogateescape"), self._token):
            raise StatusError(401, "Unauthorized", "Unauthorized")
        if "Impersonate-User" in request.headers:
            raise StatusError(403, "Forbidden", "impersonation is not supported by the local cluster")
        if request.method == "GET" and (document := self._documents.answer(request)):
            return document
        target = find_target(self.store.catalog, request.path, request.method)
        if target is None:
            if refusal := no_target(self.store.catalog, request.path):
                raise refusal
            return web.Response(status=404, text=f"{NO_SUCH_PATH}\n")
        return await self._handlers.handle(request, target)

    def _collect_soon(self) -> None:
        if not self._collecting:
            self._collecting = True
            asyncio.get_running_loop().call_soon(self._collect)

    def _collect(self) -> None:
        try:
            self._collector.run()
        finally:
            self._collecting = False
