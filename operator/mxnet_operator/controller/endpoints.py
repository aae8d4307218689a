"""HTTP servers of the controller: metrics for Prometheus, and health for a kubelet's probes."""

import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web

from mxnet_operator.controller.health import Health
from mxnet_operator.controller.metrics import Metrics
from mxnet_operator.kube.reviews import AccessReviewer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Address:
    """Listen address, as Go writes it: `:8080` is every address of the machine, port 0 any that is free."""

    host: str | None
    port: int

    def __str__(self) -> str:
        """Return the address as it is written in a flag."""
        host = self.host or ""
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address | None":
        """Return the address that a flag names; None for `0`, which disables listening.

        Raises:
            ValueError: it is no address.
        """
        if text == "0":
            return None
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
            raise ValueError(f"{text!r} is no address: write HOST:PORT, :PORT for every address, or 0 for none")
        return cls(host.strip("[]") or None, int(port))


def metrics_pages(metrics: Metrics) -> Mapping[str, Handler]:
    """Return the page `/metrics`."""

    async def show(request: web.Request) -> web.Response:
        body, content_type = metrics.render(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    return {"/metrics": show}


def guarded(pages: Mapping[str, Handler], reviewer: AccessReviewer) -> Mapping[str, Handler]:
    """Return the pages guarded by bearer tokens: the API server must allow a token to get the path."""

    def page(handler: Handler) -> Handler:
        async def show(request: web.Request) -> web.StreamResponse:
            decision = await reviewer.review(request.headers.get("Authorization", ""), request.method, request.path)
            if decision.status is HTTPStatus.OK:
                return await handler(request)
            challenge = {"WWW-Authenticate": "Bearer"} if decision.status is HTTPStatus.UNAUTHORIZED else None
            return web.Response(text=f"{decision.message}\n", status=decision.status, headers=challenge)

        return show

    return {path: page(handler) for path, handler in pages.items()}


def health_pages(health: Health) -> Mapping[str, Handler]:
    """Return `/readyz`, `/livez` and its name in controller-runtime, `/healthz`: `ok`, or 503 and the reason."""

    def page(check: Callable[[], Awaitable[str]]) -> Handler:
        async def show(_: web.Request) -> web.Response:
            wrong = await check()
            return web.Response(text=f"{wrong or 'ok'}\n", status=503 if wrong else 200)

        return show

    alive = page(health.liveness)
    return {"/readyz": page(health.readiness), "/livez": alive, "/healthz": alive}


@contextlib.asynccontextmanager
async def served(
    what: str, address: Address | None, pages: Mapping[str, Handler], tls: ssl.SSLContext | None = None
) -> AsyncIterator[int | None]:
    """Serve pages at an address, over plain HTTP or TLS; yield the port, or None where there is no address.

    Raises:
        OSError: the address can't be bound.
    """
    if address is None:
        yield None
        return
    app = web.Application()
    for path, handler in pages.items():
        app.router.add_get(path, handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, address.host, address.port, ssl_context=tls).start()
        host, port = runner.addresses[0][:2]
        scheme = "http" if tls is None else "https"
        name = f"[{host}]" if ":" in host else host
        log.info("%s at %s://%s:%d%s", what, scheme, name, port, next(iter(pages)))
        yield port
    finally:
        await runner.cleanup()
