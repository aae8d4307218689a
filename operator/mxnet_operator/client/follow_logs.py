"""The log of one replica from its start to its end, through the restarts of its job."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal

from mxnet_operator.api import names
from mxnet_operator.client.jobs import PODS, RETRY_SECONDS, DeletedError, RetryBudget, pod_name, pods_of, versions
from mxnet_operator.readers.log_lines import LineSplitter, LogCursor
from mxnet_operator.readers.long_result import is_part
from mxnet_operator.readers.pods import has_log, is_log_complete, why_not_started

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

_LOOK = 1.0
"""Seconds between two looks at whether the rest of a log comes, once its job has ended."""
_MOST_LOOKS = 10
"""Looks in a row that may find no new line, or a pod that still writes."""
_PAUSE = 0.2
"""Seconds between two streams of a log that goes on."""

OnLine = Callable[[str], None]


class LogFollower:
    """Hands each line of a replica's main container to `on_line`, as often as a pod of it starts anew.

    Lines come with their ends, byte for byte (`surrogateescape`), and very long ones in pieces. Those by which a long
    result travels are left out.
    """

    def __init__(
        self,
        client: "Client",
        job: dict[str, Any],
        replica: str,
        on_line: OnLine,
        *,
        on_wait: OnLine = lambda _: None,
        tail: int | None = None,
        retry_timeout: float = RETRY_SECONDS,
    ) -> None:
        """`tail` limits the first log to its last lines; `on_wait` is called with why a pod doesn't start.

        A server that can't be reached is waited for as long as `retry_timeout` says, in seconds.
        """
        self._client = client
        self._job = job
        self._namespace = job["metadata"]["namespace"]
        self._pod = pod_name(job["metadata"]["name"], replica)
        self._on_line = on_line
        self._on_wait = on_wait
        self._tail = tail
        self._retry_timeout = retry_timeout
        self._seen: set[str] = set()
        self._reading = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._uid = ""
        """Of the pod whose log is read."""
        self._moved = False
        """Whether there was a line since the last look."""

    def start(self) -> asyncio.Task[None]:
        """Begin to follow, in a task of its own, which ends only by what makes the following stop."""
        self._watching = asyncio.create_task(self._watch())
        return self._watching

    async def finish(self) -> bool:
        """Read what is left of the log of a job that has ended, then stop; returns whether that was all of it.

        As long as lines come there is time for those of a pod that has ended: the taker may be slow.

        Raises:
            ApiError, ApiUnavailable: what made the following stop before.
        """
        is_whole = await self._in_time(self._until_read())
        await self.cancel()
        # A container that started and ended between two looks has not been read yet.
        return is_whole and await self._in_time(self._read_once())

    async def _until_read(self) -> None:
        async with self._reading:  # else the watching might be ended between the beginning of a log and its end
            await self.cancel()

    async def _read_once(self) -> None:
        with contextlib.suppress(DeletedError):
            async with contextlib.aclosing(self._versions()) as pods:
                async for pod in pods:
                    await self._read(pod, follow=False)
                    return

    async def _in_time(self, reading: Coroutine[Any, Any, None]) -> bool:
        """Read until it is done, and return True, or until it is in vain.

        Looks are counted, and not seconds: while the taker of a line doesn't take it, nothing else can happen.
        """
        task, looks = asyncio.create_task(reading), 0
        try:
            while looks < _MOST_LOOKS:
                self._moved = False
                await asyncio.wait({task}, timeout=_LOOK)
                if task.done():
                    await task
                    return True
                looks = 0 if self._moved and await self._stands(self._uid) != "writes" else looks + 1
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
        return False

    async def cancel(self) -> None:
        """Stop at once.

        Raises:
            ApiError, ApiUnavailable: what made the following stop before.
        """
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(DeletedError):
                async with contextlib.aclosing(self._versions()) as pods:
                    async for pod in pods:
                        await self._read(pod, follow=True)
            await asyncio.sleep(0.2)  # not made yet, or between two attempts

    async def _read(self, pod: dict[str, Any], *, follow: bool) -> None:
        from mxnet_operator.kube.client import ApiError, ApiUnavailable  # noqa: PLC0415

        uid = pod["metadata"]["uid"]
        if uid in self._seen or not pods_of(self._job, [pod]):
            return
        if not has_log(pod):
            self._on_wait(why_not_started(pod))
            return
        self._on_wait("")
        async with self._reading:
            self._seen.add(uid)
            self._uid = uid
            tail, self._tail = self._tail, None
            cursor, budget = LogCursor(exact=True), RetryBudget(self._retry_timeout)
            while True:  # a stream may end before its log, by a server that is restarted, say
                stands = await self._stands(uid) if follow else "ended"
                if stands == "gone":
                    return
                try:
                    await self._read_stream(cursor, follow=stands == "writes", tail=tail)
                except (ApiUnavailable, ApiError) as error:
                    await budget.bear(error)
                    continue
                if stands == "ended":
                    return
                budget.answered()
                await asyncio.sleep(_PAUSE)

    async def _stands(self, uid: str) -> Literal["writes", "ended", "gone"]:
        """Return how the pod stands: the log of one that is gone went with it, and its name may be another's."""
        with contextlib.suppress(DeletedError):
            async with contextlib.aclosing(self._versions()) as pods:
                async for pod in pods:
                    if pod["metadata"]["uid"] != uid:
                        return "gone"
                    return "ended" if is_log_complete(pod) else "writes"
        return "gone"

    async def _read_stream(self, cursor: LogCursor, *, follow: bool, tail: int | None) -> None:
        """Read on from where the cursor is to the end of the stream.

        Raises:
            ApiError, ApiUnavailable: the server rejects it, or the connection broke: the line under way comes again.
        """
        from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

        params: dict[str, str | int | bool] = {"container": names.CONTAINER, "follow": follow, "timestamps": True}
        if since := cursor.reconnect():
            params["sinceTime"] = since
        elif tail is not None:
            params["tailLines"] = tail
        splitter = LineSplitter(exact=True)
        path = PODS.path(self._namespace, self._pod, "log")
        try:
            async with contextlib.aclosing(self._client.stream(path, params)) as chunks:
                async for chunk in chunks:
                    for line in splitter.feed(chunk):
                        self._show(cursor.take(line))
        except ApiError as error:
            if error.code not in {400, 404}:
                raise
        if splitter.rest:
            self._show(cursor.take(splitter.rest))

    def _show(self, line: str | None) -> None:
        if line is not None and not is_part(line):
            self._on_line(line)
            self._moved = True

    def _versions(self) -> AsyncGenerator[dict[str, Any]]:
        return versions(self._client, PODS, self._namespace, self._pod, retry_timeout=self._retry_timeout)


async def log_lines(
    client: "Client", namespace: str, pod: str, *, tail: int | None = None, timestamps: bool = False
) -> AsyncIterator[str]:
    """Yield the lines so far of a pod's `mxnet` container, as `LogFollower` has them, up to where a connection breaks.

    Nothing where the pod is gone. With `timestamps` each line begins with when it was written, and a blank.
    """
    from mxnet_operator.kube.client import ApiError, ApiUnavailable  # noqa: PLC0415

    params: dict[str, str | int | bool] = {"container": names.CONTAINER}
    if timestamps:
        params["timestamps"] = True
    if tail is not None:
        params["tailLines"] = tail
    splitter = LineSplitter(exact=True)
    try:
        async with contextlib.aclosing(client.stream(PODS.path(namespace, pod, "log"), params)) as chunks:
            async for chunk in chunks:
                for line in splitter.feed(chunk):
                    text = line.decode("utf-8", "surrogateescape")
                    if not is_part(text):
                        yield text
    except ApiUnavailable:
        pass
    except ApiError as error:
        if error.code not in {400, 404}:
            raise
    if splitter.rest:
        yield splitter.rest.decode("utf-8", "surrogateescape")
