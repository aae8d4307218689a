"""Log of a pod, each line once over any number of connections, and of a replica, through the restarts of its job."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from mxnet_operator.api import names
from mxnet_operator.client.jobs import collections, pod_name, pods_of
from mxnet_operator.client.outage import LOG_SILENCE_SECONDS, READ_SILENCE_SECONDS, Outage, Retries
from mxnet_operator.kube.answers import Stored
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, SilentConnectionError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.readers.log_lines import LineSplitter, LogCursor
from mxnet_operator.readers.long_result import is_part
from mxnet_operator.readers.pods import has_log, is_log_complete, why_not_started

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

_LOOK = 1.0
"""Seconds between two looks at whether the rest of a log comes, once its job has ended."""
_MOST_LOOKS = 10
"""Looks in a row that may find no new line, or a pod that still writes."""

_NO_LOG: Final = frozenset({400, 404})
"""Codes by which a log is refused whose pod is gone, or that isn't there yet."""
_OF_NODE: Final = 500
"""Code with which an API server answers whose node doesn't."""

OnLine = Callable[[str], None]
State = Literal["writes", "ended", "gone"]
"""Of a pod's main container."""


@dataclass
class PodLog:
    """Log of one pod's main container, read from where its cursor is."""

    client: "Client"
    namespace: str
    pod: str
    uid: str = ""
    """UID of the pod: `follow` doesn't read the log of another one that takes the name."""
    _: KW_ONLY
    cursor: LogCursor = field(default_factory=LogCursor)
    outage: InitVar[Outage | None] = None
    on_trouble: OnLine = lambda _: None
    """Called once with why the log can't be read, while its pod can; reading is tried on."""
    is_cut: bool = field(default=False, init=False)
    """Whether the last stream has ended at its limit of bytes."""

    def __post_init__(self, outage: Outage | None) -> None:
        self._path = PODS.path(self.namespace, self.pod)
        outage = outage or Outage()
        self._streams, self._looks = Retries(outage), Retries(outage)
        self._is_in_trouble = False

    async def follow(self, *, tail: int | None = None) -> AsyncGenerator[str]:
        """Yield the lines until the container has ended, or the pod is gone; `tail` limits a log that begins.

        A stream that breaks, or is silent for a minute, is followed by a look at the pod and another stream.

        Raises:
            ApiUnavailable, ApiError: the server was away for too long, or it rejects the request.
        """
        while True:
            state = await self.state()
            if state == "gone":
                return
            try:
                limit = tail if self.cursor.since is None else None
                lines = self.lines(follow=state == "writes", tail=limit, to_the_end=state == "ended")
                async with contextlib.aclosing(lines):
                    async for line in lines:
                        self._streams.answered()
                        self._is_in_trouble = False
                        yield line
            except SilentConnectionError:
                continue
            except ApiUnavailable:
                pass
            except ApiError as error:
                if error.code in _NO_LOG:
                    if state == "ended":
                        return
                elif not error.is_transient:
                    raise
                elif not self._is_in_trouble:
                    self._is_in_trouble = True
                    self.on_trouble(f"the log of {self.pod} can't be read for now: {error}")
            else:
                if state == "ended":
                    return
            await self._streams.pause()

    async def so_far(self, *, tail: int | None = None) -> AsyncGenerator[str]:
        """Yield the lines that are there, over as many streams as break in an outage; none where the pod is gone.

        Raises:
            ApiUnavailable, ApiError: the server was away for too long, the pod's node is, or the request is rejected.
        """
        while True:
            try:
                async with contextlib.aclosing(self.lines(tail=tail if self.cursor.since is None else None)) as lines:
                    async for line in lines:
                        self._streams.answered()
                        yield line
            except (ApiUnavailable, ApiError) as error:
                if isinstance(error, ApiError) and error.code in _NO_LOG:
                    return
                if isinstance(error, ApiError) and error.code == _OF_NODE:
                    raise
                await self._streams.pause_or_raise(error)
            else:
                return

    async def lines(
        self, *, follow: bool = False, tail: int | None = None, limit: int | None = None, to_the_end: bool = True
    ) -> AsyncGenerator[str]:
        """Yield the lines after the cursor that one stream brings, up to a limit of bytes.

        Its last line, if that has no end, comes only with `to_the_end`: else it may be half a line. One that is
        followed goes on until the container has ended, or is silent for a minute (SilentConnectionError).
        """
        splitter, size, since = LineSplitter(exact=self.cursor.exact), 0, self.cursor.reconnect()
        asked = (("sinceTime", since), ("tailLines", tail), ("limitBytes", limit), ("follow", follow or None))
        params: dict[str, str | int | bool] = {"container": names.CONTAINER, "timestamps": True}
        params |= {name: value for name, value in asked if value is not None}
        idle = LOG_SILENCE_SECONDS if follow else READ_SILENCE_SECONDS
        async with contextlib.aclosing(self.client.stream(f"{self._path}/log", params, idle_timeout=idle)) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                for line in splitter.feed(chunk):
                    if (text := self.cursor.take(line)) is not None:
                        yield text
        self.is_cut = limit is not None and size >= limit
        if to_the_end and splitter.rest and (text := self.cursor.take(splitter.rest)) is not None:
            yield text

    async def state(self) -> State:
        """Return how the pod stands: the log of one that is gone went with it, and its name may be another's."""
        pod = await self._looks.until_answered(lambda: self.client.find(self._path, shape=Stored))
        if pod is None or pod["metadata"]["uid"] != self.uid:
            return "gone"
        return "ended" if is_log_complete(pod) else "writes"


class PodFollower:
    """The following of one pod's log, in a task of its own; lines by which a long result travels are left out."""

    def __init__(self, log: PodLog, take: Callable[[str], Awaitable[object]], *, tail: int | None = None) -> None:
        """Begin to hand each line to `take`; `tail` limits a log that begins."""
        self.log = log
        self._take, self._tail = take, tail
        self._moved = False
        """Whether there was a line since the last look."""
        self.task = asyncio.create_task(self._read())

    @property
    def is_whole(self) -> bool:
        """Whether the log was read until its container had ended, or its pod was gone."""
        return self.task.done() and not self.task.cancelled() and self.task.exception() is None

    async def finish(self) -> bool:
        """Read to the end of a container that has ended, then stop; returns whether that was reached.

        As long as lines come there is time: the taker may be slow. A connection that brings none may be dead, and is
        opened anew once.

        Raises:
            ApiError, ApiUnavailable: the log can't be read.
        """
        for _ in range(2):
            if await self._ends():
                self.task.result()
                return True
            await self.cancel()
            self.task = asyncio.create_task(self._read())
        await self.cancel()
        return False

    async def cancel(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})

    async def _read(self) -> None:
        async with contextlib.aclosing(self.log.follow(tail=self._tail)) as lines:
            async for line in lines:
                if not is_part(line):
                    await self._take(line)
                    self._moved = True

    async def _ends(self) -> bool:
        """Wait until the task is done, or in vain.

        Looks are counted, and not seconds: while the taker of a line doesn't take it, nothing else can happen.
        """
        looks = 0
        while looks < _MOST_LOOKS:
            self._moved = False
            await asyncio.wait({self.task}, timeout=_LOOK)
            if self.task.done():
                return True
            looks = 0 if self._moved and await self.log.state() != "writes" else looks + 1
        return False


@dataclass
class LogFollower:
    """Hands each line of a replica's main container to `on_line`, as often as a pod of it starts anew.

    Lines come with their ends, byte for byte (`surrogateescape`), and very long ones in pieces.
    """

    client: "Client"
    job: dict[str, Any]
    replica: str
    on_line: OnLine
    _: KW_ONLY
    on_wait: OnLine = lambda _: None
    """Called with why a log has no lines yet."""
    tail: int | None = None
    """Limits the first log to its last lines."""
    outage: Outage = field(default_factory=Outage)

    def __post_init__(self) -> None:
        self._namespace = self.job["metadata"]["namespace"]
        self._pod = pod_name(self.job["metadata"]["name"], self.replica)
        self._watching: asyncio.Task[None] | None = None
        self._reading: PodFollower | None = None

    def start(self) -> asyncio.Task[None]:
        """Begin to follow, in a task of its own, which ends only by what makes the following stop."""
        self._watching = asyncio.create_task(self._watch())
        return self._watching

    async def finish(self) -> bool:
        """Read what is left of the log of a job that has ended, then stop; returns whether that was all of it.

        Raises:
            ApiError, ApiUnavailable: what made the following stop before.
        """
        await self._stop_watching()
        is_whole = self._reading is None or await self._reading.finish()
        async with contextlib.aclosing(self._pods()) as changes:
            self._begin(await anext(changes))  # a container that started and ended between two looks
        return is_whole and (self._reading is None or await self._reading.finish())

    async def cancel(self) -> None:
        """Stop at once.

        Raises:
            ApiError, ApiUnavailable: what made the following stop before.
        """
        if self._reading is not None:
            await self._reading.cancel()
        await self._stop_watching()

    async def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching

    async def _watch(self) -> None:
        async with contextlib.aclosing(self._pods()) as changes:
            async for pods in changes:
                if self._begin(pods) and self._reading is not None:
                    await asyncio.shield(self._reading.task)

    def _pods(self) -> AsyncGenerator[dict[str, dict[str, Any]]]:
        selector = {"fieldSelector": f"metadata.name={self._pod}"}
        return collections(self.client, PODS.path(self._namespace), selector, outage=self.outage)

    def _begin(self, pods: dict[str, dict[str, Any]]) -> bool:
        """Begin to follow the log of the replica's pod, unless that was begun before, or there is none yet."""
        for pod in pods_of(self.job, pods.values()):
            uid = pod["metadata"]["uid"]
            if self._reading is not None and uid == self._reading.log.uid:
                continue
            if not has_log(pod):
                self.on_wait(why_not_started(pod))
                continue
            self.on_wait("")
            log = PodLog(
                self.client,
                self._namespace,
                self._pod,
                uid,
                cursor=LogCursor(exact=True),
                outage=self.outage,
                on_trouble=self.on_wait,
            )
            self._reading = PodFollower(log, self._hand_on, tail=self.tail)
            self.tail = None
            return True
        return False

    async def _hand_on(self, line: str) -> None:
        self.on_line(line)


async def log_lines(client: "Client", namespace: str, pod: str, *, tail: int | None = None) -> AsyncGenerator[str]:
    """Yield the lines so far of a pod's main container, as `LogFollower` has them; none where the pod is gone."""
    log = PodLog(client, namespace, pod, cursor=LogCursor(exact=True))
    async with contextlib.aclosing(log.so_far(tail=tail)) as lines:
        async for line in lines:
            if not is_part(line):
                yield line
