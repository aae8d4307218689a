"""A front of an API server that can go away and come back, as a server that is restarted does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self


class Outage:
    """Passes connections on to the server at `url`, byte by byte; gone, it breaks them all and takes no new ones."""

    def __init__(self, url: str) -> None:
        self._server = url
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listening: asyncio.Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[Self]:
        """The front with an address of its own."""
        await self.come_back()
        try:
            yield self
        finally:
            await self.go()

    async def come_back(self) -> None:
        self._listening = listening = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = listening.sockets[0].getsockname()[1]

    async def go(self) -> None:
        assert self._listening is not None, "it is not served"
        self._listening.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "asyncio serves connections in tasks"
        self._tasks.add(task)
        try:
            address, _, port = self._server.removeprefix("https://").partition(":")
            there, back = await asyncio.open_connection(address, int(port))
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._copy(reader, back))
                    both.create_task(self._copy(there, writer))
            finally:
                back.transport.abort()
        except (OSError, ExceptionGroup):
            pass
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    @staticmethod
    async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.close()
