"""The blocking face of an asynchronous client, made of it method by method: signatures and docstrings are its own.

The client runs on an event loop in a thread: a notebook has a loop already.
"""

import asyncio
import concurrent.futures
import contextlib
import functools
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_PAUSE_FOR_A_STEP: Final = 0.01
"""Seconds between two looks at a step that was cancelled."""
_CLOSED: Final = "the client is closed"


class BlockingFace:
    """Blocking face of `client`, which it enters at once; threads may share it."""

    def __init__(self, client: AbstractAsyncContextManager[Any]) -> None:
        self._async = client
        self._is_closed = False
        self._entry = threading.RLock()
        """Held while a call is handed to the loop, and while the client is closed: no call comes after the last one."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mxjob-client", daemon=True)
        self._thread.start()
        try:
            self._run(self._async.__aenter__())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections; jobs go on."""
        self.close()

    def close(self) -> None:
        """Close the connections; calls that wait in other threads raise RuntimeError, jobs go on."""
        self._is_closed = True
        with self._entry:
            if self._thread.is_alive():
                asyncio.run_coroutine_threadsafe(self._end_calls(), self._loop).result()
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()

    def _ask(self, call: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        return self._run(call(self._async))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._entry:
            if self._is_closed:
                work.close()
                raise RuntimeError(_CLOSED)
            running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except concurrent.futures.CancelledError:
            raise RuntimeError(_CLOSED) from None
        except BaseException:
            running.cancel()
            raise

    def _iterate(self, items: AsyncGenerator[T]) -> Iterator[T]:
        try:
            with contextlib.suppress(StopAsyncIteration):
                while True:
                    yield self._run(_next(items))
        finally:
            try:
                self._run(_close(items))
            except RuntimeError:
                if not self._is_closed:  # closing the client closes its logs
                    raise

    async def _end_calls(self) -> None:
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for each in calls:
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._async.__aexit__(None, None, None)
        await self._loop.shutdown_asyncgens()


def blocking(method: Callable[Concatenate[Any, P], Awaitable[T]]) -> Callable[Concatenate[Any, P], T]:
    """Return the method of a blocking face that waits for a method of its client."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._ask(lambda client: getattr(client, method.__name__)(*args, **kwargs))
        return result

    return call


def blocking_iterator(
    method: Callable[Concatenate[Any, P], AsyncGenerator[T]],
) -> Callable[Concatenate[BlockingFace, P], Iterator[T]]:
    """Return the method of a blocking face that yields what a method of its client does."""

    @functools.wraps(method)
    def call(self: BlockingFace, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._iterate(getattr(self._async, method.__name__)(*args, **kwargs))

    return call


async def _next(items: AsyncGenerator[T]) -> T:
    return await anext(items)


async def _close(items: Any) -> None:
    """Close the generator, once a step of it that was cancelled, as by Ctrl-C, has ended."""
    while items.ag_running:  # noqa: ASYNC110 - a generator has no event for it
        await asyncio.sleep(_PAUSE_FOR_A_STEP)
    await items.aclose()
