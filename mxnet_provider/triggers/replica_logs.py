"""The logs of a job's replicas, shown in the log of a deferred task: read poll by poll, each line once."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api.conditions import CREATED, job_state
from mxnet_operator.api.log_lines import LineSplitter, LogCursor
from mxnet_provider import replicas
from mxnet_provider.api_errors import message
from mxnet_provider.job_ref import JobRef
from mxnet_provider.metrics import Metrics

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook

_POLL_BYTES: Final = 8 * 1024 * 1024
_DRAIN_BYTES: Final = 64 * 1024 * 1024
_DRAIN_SECONDS: Final = 60.0
_LINES_AT_ONCE: Final = 50
"""After so many lines the event loop has its turn: hundreds of jobs share it."""


class ReplicaLogPoller:
    """Shows what is new in the logs of the chosen replicas whenever it is asked to look.

    Nothing that goes wrong with a log is more than a warning.

    Args:
        hook: An entered hook.
        ref: The job.
        chosen: The replicas, such as `worker-0`; the figures that the first of them reports become `metrics`.
        log: Where the lines go.
        metrics: What reads the first one's lines.
        cursors: Where an earlier reading has got to.
        shown_until: Lines written before this moment (seconds since the epoch) are in the task's log already: of
            them only the figures are taken.
    """

    def __init__(
        self,
        hook: "MXNetJobAsyncHook",
        ref: JobRef,
        chosen: Sequence[str],
        log: "Logger",
        metrics: Metrics,
        *,
        cursors: Mapping[str, Sequence[Any]],
        shown_until: float = 0.0,
    ) -> None:
        self.complete: set[str] = set()
        self._hook = hook
        self._ref = ref
        self._chosen = tuple(chosen)
        self._log = log
        self._metrics = metrics
        self._cursors = {label: LogCursor(cursors.get(label)) for label in self._chosen}
        self._shown_until = shown_until
        self._pods: dict[str, str] = {}
        self._restarts: int | None = None
        self._warned = False

    def cursors(self) -> dict[str, list[Any]]:
        """Where the reading has got to."""
        return {label: cursor.state() for label, cursor in self._cursors.items() if cursor.since}

    async def look(self, job: Mapping[str, Any]) -> None:
        """Show what has been written since the last look."""
        if not self._chosen or job_state(job) in ("", CREATED):
            return
        try:
            await self._find_pods(job)
            for label, pod in self._pods.items():
                await self._read(label, pod, _POLL_BYTES)
        except Exception as e:
            self._warn(e)

    async def drain(self, pods: Iterable[replicas.Pod]) -> None:
        """Show the rest of the logs of pods that have ended; a minute at most."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                for pod in pods:
                    label = replicas.label(pod)
                    if label in self._cursors and replicas.has_started(pod):
                        await self._read(label, pod["metadata"]["name"], _DRAIN_BYTES, to_the_end=True)
                        self.complete.add(label)
        except Exception as e:
            self._warn(e)

    async def _find_pods(self, job: Mapping[str, Any]) -> None:
        """List the pods only when they may be others than at the last look: it is the dearest of the requests."""
        restarts = (job.get("status") or {}).get("restarts") or 0
        if restarts == self._restarts and len(self._pods) == len(self._chosen):
            return
        pods = await self._hook.replica_pods(self._ref)
        self._restarts = restarts
        self._pods = {
            label: pod["metadata"]["name"]
            for pod in pods
            for label in [replicas.label(pod)]
            if label in self._cursors and replicas.has_started(pod)
        }

    async def _read(self, label: str, pod: str, limit: int, *, to_the_end: bool = False) -> None:
        cursor, splitter, read = self._cursors[label], LineSplitter(), 0
        async with aclosing(self._hook.read_log(pod, self._ref.namespace, since=cursor.reconnect())) as chunks:
            async for chunk in chunks:
                await self._show(label, cursor, splitter.feed(chunk))
                read += len(chunk)
                if read > limit:
                    return
        if to_the_end and splitter.rest:  # else it may be half a line, and comes whole the next time
            await self._show(label, cursor, [splitter.rest])

    async def _show(self, label: str, cursor: LogCursor, lines: Iterable[bytes]) -> None:
        for number, line in enumerate(lines, 1):
            text = cursor.take(line)
            if text is not None:
                if label == self._chosen[0]:
                    self._metrics.read(text)
                if not self._shown_until or cursor.moment >= self._shown_until:
                    self._log.info("[%s] %s", label, text)
            if number % _LINES_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _warn(self, e: Exception) -> None:
        if not self._warned:
            self._warned = True
            self._log.warning("Could not read the replicas' logs; will try again: %s", message(e))
