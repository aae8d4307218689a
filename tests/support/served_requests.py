"""A server of a test's own: one handler answers whatever is asked, on a free port."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TypeVar

from aiohttp import web
from waiting import MOMENT

from mxnet_operator.kube.tls import PromptTls

T = TypeVar("T")

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
    if identity is not None:
        identity.sslobject_class = PromptTls
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=identity).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)  # connections are closed in the loop's next turn


@contextmanager
def in_thread(server: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """What an asynchronous context yields, on an event loop of its own: a server for clients that block."""
    started: Future[T] = Future()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with server as given:
            started.set_result(given)
            await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as e:
            if not started.done():
                started.set_exception(e)
            raise
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="server")
    thread.start()
    try:
        yield started.result(MOMENT)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(MOMENT)
