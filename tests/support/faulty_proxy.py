"""A proxy between one controller and the API server: it counts the controller's writes, and one of them goes wrong."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web
from apiserver_fixtures import Api
from kubeconfigs import write_kubeconfig
from served_requests import passed_on_headers, served_requests

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Fault(Enum):
    """What goes wrong with a write."""

    KILLED = "the controller is killed once it is carried out"
    REPLY_LOST = "its reply is lost"
    REQUEST_LOST = "it never reaches the server"


class FaultyProxy:
    """Passes requests on, writes one at a time, in the order in which they come.

    The write of number `at`, or the first of a kind as `kind_of_write` calls it, meets the `fault`; `kill` is what ends
    the controller. From then on nothing of that controller's is passed on, what it had under way included; the next
    one's is.
    """

    def __init__(self, api: Api, folder: Path) -> None:
        self.api = api
        self.folder = Path(folder)
        self.at, self.fault, self.kill = 0, None, None
        self.writes: list[str] = []
        """Each write that the server has carried out or refused: its method and path."""
        self.answers: list[Any] = []
        """What reading was refused with: the path and the code or a watch's ERROR."""
        self.met = ""
        """The write that met the fault."""
        self.hit = asyncio.Event()
        self.open = asyncio.Event()
        """Cleared, it holds every new request up."""
        self.open.set()
        self.kubeconfig = self.folder / "unserved.kubeconfig"
        self._streams: set[Any] = set()
        self._one_at_a_time = asyncio.Lock()
        self._controller = 0

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Self]:
        """The proxy with a free port and a kubeconfig that leads to it."""
        async with served_requests(self._relay) as port:
            self.kubeconfig = self.folder / f"proxy-{port}.kubeconfig"
            write_kubeconfig(self.kubeconfig, f"http://127.0.0.1:{port}", self.api.token)
            yield self

    def cut(self) -> None:
        """Break every connection with a stream; nothing new gets through until `open` is set."""
        self.open.clear()
        for transport in self._streams:
            transport.abort()

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        controller = self._controller
        await self.open.wait()
        if request.method not in WRITES:
            return await self._stream(request)
        async with self._one_at_a_time:
            if controller != self._controller:
                return _broken(request)
            write = f"{request.method} {request.path}"
            fault = self.fault if self._is_aimed_at(write) else None
            if fault is Fault.REQUEST_LOST:
                self._meet(write)
                return _broken(request)
            async with self._ask(request, await request.read()) as answer:
                body = await answer.read()
            self.writes.append(write)
            if fault is not None:
                if fault is Fault.KILLED:
                    self._controller += 1
                    self.kill()
                self._meet(write)
                return _broken(request)
            return web.Response(status=answer.status, body=body, headers={"Content-Type": answer.content_type})

    def _is_aimed_at(self, write: str) -> bool:
        return not self.hit.is_set() and self.at in (len(self.writes) + 1, kind_of_write(write))

    def _meet(self, write: str) -> None:
        self.met = write
        self.hit.set()

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        async with self._ask(request, None) as answer:
            if answer.status >= 400:
                self.answers.append((request.path, answer.status))
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            self._streams.add(request.transport)
            with contextlib.suppress(ConnectionError):  # the controller has gone
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    if b'{"type":"ERROR"' in chunk:
                        self.answers.append((request.path, json.loads(chunk.splitlines()[-1])["object"]["code"]))
                    await response.write(chunk)
            self._streams.discard(request.transport)
            return response

    def _ask(self, request: web.Request, body: Any) -> Any:
        headers = passed_on_headers(request)
        timeout = aiohttp.ClientTimeout(total=None)
        return self.api.session.request(
            request.method, self.api.base + request.path_qs, data=body, headers=headers, timeout=timeout
        )


def kind_of_write(write: str) -> str:
    """What was written: the method and the resource."""
    return f"{write.split(maxsplit=1)[0]} {write.split('/namespaces/')[1].split('/')[1]}"


def _broken(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)
