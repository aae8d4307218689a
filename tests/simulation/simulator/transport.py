"""The way from one controller to the API server, on which a schedule lets things go wrong at the n-th request."""

import asyncio
from collections.abc import Callable, MutableSequence
from typing import TypeVar

import msgspec
from simulator.api import Api

from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.kube.transport import Request

T = TypeVar("T")

FAULTS = ("dies before", "dies after", "reply lost", "unavailable", "refused", "held")


class Fault(msgspec.Struct, frozen=True):
    """What happens to the `at`-th request of a look, counted from 0."""

    kind: str
    at: int


class SimulatedTransport:
    """Stands where kube's HTTP transport does.

    `acting` is called around every request that reaches the server; `listed` after one for a pod by its name, or for a
    list of pods (an empty name), which comes before all writes: what is asked for later is not what was decided by.
    """

    def __init__(self, api: Api, acting: Callable[[bool], None], listed: Callable[[str], None]) -> None:
        self._api = api
        self._acting = acting
        self._listed = listed
        self._fault: Fault | None = None
        self._asked = 0
        self._has_written = False
        self.died = False
        self.stopped = asyncio.Event()
        """Set when a request is held, or its process has died: the look won't go on by itself."""
        self.released = asyncio.Event()

    def begin(self, fault: Fault | None) -> None:
        """A look begins."""
        self._fault, self._asked, self._has_written = fault, 0, False
        self.stopped.clear()
        self.released.clear()

    async def request(
        self, request: Request, read: Callable[[bytes], T], *, warnings: MutableSequence[str] | None = None
    ) -> T:
        kind = self._fault.kind if self._fault is not None and self._asked == self._fault.at else ""
        self._asked += 1
        if kind == "held":
            self.stopped.set()
            await self.released.wait()
        if kind == "dies before" or self.died:
            await self._die()
        if kind == "unavailable":
            raise ApiUnavailable("no connection")
        if kind == "refused":
            if request.method == "POST" and not request.path.endswith("/events"):
                raise ApiError(403, "Forbidden", "exceeded quota")
            raise ApiError(500, "InternalError", "etcdserver: request timed out")
        self._has_written = self._has_written or request.method != "GET"
        texts: list[str] = []
        self._acting(True)
        try:
            answer = self._api.answer(request, texts)
        finally:
            self._acting(False)
        if request.method == "GET" and "/pods" in request.path and not self._has_written:
            self._listed(request.path.partition("/pods")[2].strip("/"))
        if kind == "dies after":
            await self._die()
        if kind == "reply lost":
            raise ApiUnavailable("the connection broke")
        if warnings is not None:
            warnings.extend(texts)
        return read(answer)

    @property
    def lost_a_reply(self) -> bool:
        """Whether the controller doesn't know what became of a request of this look."""
        return self._fault is not None and self._fault.kind == "reply lost" and self._asked > self._fault.at

    async def _die(self) -> None:
        self.died = True
        self.stopped.set()
        await asyncio.get_running_loop().create_future()


class SimulatedClient(Client):
    """kube's own client over a simulated transport."""

    def __init__(self, transport: SimulatedTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._may_write = None
