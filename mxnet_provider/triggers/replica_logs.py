"""The logs of a job's replicas, shown in the log of a deferred task: read poll by poll, each line once."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api.conditions import CREATED, job_state
from mxnet_operator.readers.log_lines import LineSplitter, LogCursor
from mxnet_operator.readers.long_result import is_part
from mxnet_operator.readers.pods import has_log, label_of
from mxnet_provider.hooks.api_errors import message
from mxnet_provider.job import replicas
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.log_budget import LogBudget, notice
from mxnet_provider.job.metrics import Metrics

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook

_POLL_BYTES: Final = 8 * 1024 * 1024
"""So much that is new is read in one poll; the rest in the next ones."""
_DRAIN_SECONDS: Final = 60.0
_TAIL_SECONDS: Final = 10.0
_TAIL_LINES: Final = 1000
_AT_ONCE: Final = 1000
_PER_SECOND: Final = 20.0
_SHOWN_LINE: Final = 50
"""What showing a line costs, where reading one costs 1: Airflow's own logging takes milliseconds."""
_TURN: Final = 1000
"""After work of so much cost the event loop has its turn: hundreds of jobs share it."""


class ReplicaLogPoller:
    """Shows what is new in the logs of the chosen replicas whenever it is asked to poll.

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
        clock: Seconds, for how many lines are shown in them.
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
        clock: Callable[[], float] = time.monotonic,
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
        self._clock = clock
        self._budgets: dict[str, LogBudget] = {}
        self._work = 0

    def cursors(self) -> dict[str, list[Any]]:
        """Positions up to which the logs have been read."""
        return {label: cursor.state() for label, cursor in self._cursors.items() if cursor.since}

    async def poll(self, job: Mapping[str, Any]) -> None:
        """Show what has been written since the last poll."""
        if not self._chosen or job_state(job) in ("", CREATED):
            return
        try:
            await self._find_pods(job)
            for label, pod in self._pods.items():
                await self._read(label, pod, _POLL_BYTES)
        except Exception as e:
            self._warn(e)

    async def drain(self, pods: Iterable[replicas.Pod]) -> None:
        """Show the rest of the logs of pods that have ended: the last lines of each, whatever was left out."""
        for pod in pods:
            label, name = label_of(pod), pod["metadata"]["name"]
            if label not in self._cursors or not has_log(pod):
                continue
            try:
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._read(label, name, to_the_end=True)
                self.complete.add(label)
            except Exception as e:
                self._log.warning(
                    "[%s] Could not read the whole log, and its figures may lack some: %s", label, message(e)
                )
                await self._read_tail(label, name)
            await self._emit(self._budget(label, name).finish())

    async def _find_pods(self, job: Mapping[str, Any]) -> None:
        """List the pods only when they may be others than at the last poll: it is the dearest of the requests."""
        restarts = (job.get("status") or {}).get("restarts") or 0
        if restarts == self._restarts and len(self._pods) == len(self._chosen):
            return
        pods = await self._hook.replica_pods(self._ref)
        self._restarts = restarts
        self._pods = {
            label: pod["metadata"]["name"]
            for pod in pods
            for label in [label_of(pod)]
            if label in self._cursors and has_log(pod)
        }

    async def _read(self, label: str, pod: str, limit: float = math.inf, *, to_the_end: bool = False) -> None:
        """Read on from where the cursor is, up to a limit of bytes that were not read before."""
        cursor, fresh = self._cursors[label], 0
        chunks = self._hook.read_log(pod, self._ref.namespace, since=cursor.reconnect())
        await self._emit(self._budget(label, pod).release())
        async with aclosing(_lines(chunks, to_the_end=to_the_end)) as lines:
            async for line in lines:
                text = cursor.take(line)
                if text is not None:
                    await self._show(label, pod, text)
                    fresh += len(line)
                    if fresh > limit:
                        return
                await self._give_way(1 + len(line) // 1024)

    async def _read_tail(self, label: str, pod: str) -> None:
        """Read the last lines alone, where reading all of them was too much."""
        cursor = self._cursors[label]
        try:
            async with asyncio.timeout(_TAIL_SECONDS):
                chunks = self._hook.read_log(pod, self._ref.namespace, since=cursor.reconnect(), tail_lines=_TAIL_LINES)
                async with aclosing(_lines(chunks, to_the_end=True)) as lines:
                    async for line in lines:
                        if (text := cursor.take(line)) is not None:
                            await self._show(label, pod, text)
        except Exception as e:
            self._log.warning("[%s] Could not read the end of the log either: %s", label, message(e))

    async def _show(self, label: str, pod: str, text: str) -> None:
        """Take a line's figures, and show it if the task's log has room for it."""
        if label == self._chosen[0]:
            self._metrics.read(text)
        if is_part(text):
            return
        if not self._shown_until or self._cursors[label].moment >= self._shown_until:
            await self._emit(self._budget(label, pod).take(f"[{label}] {text}"))

    async def _emit(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._log.info("%s", line)
            await self._give_way(_SHOWN_LINE)

    async def _give_way(self, cost: int) -> None:
        """Count work, and let others of the loop have their turn when it was enough."""
        self._work += cost
        if self._work >= _TURN:
            self._work = 0
            await asyncio.sleep(0)

    def _budget(self, label: str, pod: str) -> LogBudget:
        if label not in self._budgets:
            self._budgets[label] = LogBudget(
                at_once=_AT_ONCE,
                per_second=_PER_SECOND,
                notice=notice(label, pod, self._ref.namespace),
                clock=self._clock,
            )
        return self._budgets[label]

    def _warn(self, e: Exception) -> None:
        if not self._warned:
            self._warned = True
            self._log.warning("Could not read the replicas' logs; will try again: %s", message(e))


async def _lines(chunks: AsyncGenerator[bytes, None], *, to_the_end: bool) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a log; the last one only where it will not grow any more, else it may be half a line."""
    splitter = LineSplitter()
    async with aclosing(chunks):
        async for chunk in chunks:
            for line in splitter.feed(chunk):
                yield line
    if to_the_end and splitter.rest:
        yield splitter.rest
