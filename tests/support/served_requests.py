"""A server of a test's own: one handler answers whatever is asked, on a free port."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

LARGEST_BODY = 2**24
"""Bytes."""
_HOP_BY_HOP = frozenset({"host", "connection", "transfer-encoding", "content-length", "keep-alive"})


def passed_on_headers(request: web.Request, *without: str) -> dict[str, str]:
    """The headers for another server: without those of the connection, and others, in small letters."""
    left_out = _HOP_BY_HOP.union(without)
    return {name: value for name, value in request.headers.items() if name.lower() not in left_out}


@asynccontextmanager
async def served_requests(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], identity: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve on loopback, with TLS where there is an identity; yields the port.

    A handler whose client goes away, or that still answers at the end, is cancelled.
    """
    app = web.Application(client_max_size=LARGEST_BODY)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=identity).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)  # connections are closed in the loop's next turn
