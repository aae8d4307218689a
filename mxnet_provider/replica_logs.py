"""The logs of a job's replicas, shown in the log of its task, each line once.

A trigger reads them poll by poll, since hundreds of tasks share its loop; a worker follows them as they are written. A
trigger follows as well where the job's end deletes the pods: what a pod writes after the last poll goes with it.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from mxnet_operator.api.conditions import CREATED, job_state
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.client.outage import Outage
from mxnet_operator.client.pod_log import PodFollower, PodLog
from mxnet_operator.client.training import compare_workers
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.readers.log_lines import LogCursor
from mxnet_operator.readers.long_result import is_part
from mxnet_operator.readers.pods import has_log, label_of
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.worker_logs import stall_in
from mxnet_provider.hooks.api_errors import message
from mxnet_provider.job import replicas
from mxnet_provider.job.log_budget import LogBudget, notice

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.job_client import AsyncJobClient

_POLL_BYTES: Final = 8 * 1024 * 1024
"""So much that is new is read in one poll; the rest in the next ones."""
_POLL_SECONDS: Final = 10.0
_DRAIN_SECONDS: Final = 60.0
_TAIL_SECONDS: Final = 10.0
_TAIL_LINES: Final = 1000
_ALLOWANCE: Final = {False: (1000, 20.0), True: (10_000, 200.0)}
"""Lines at once, and more a second, by whether a log is followed: a worker, which does, is its task's alone."""
_MOST_FOLLOWED: Final = 50
"""Logs that the triggers of a process follow: half of its connections to an API server."""
_SETTLE_SECONDS: Final = 10.0
_STALL_SECONDS: Final = 10.0
"""By then the other workers have written where they stand."""
_QUIET_SECONDS: Final = 320.0
"""Seconds without a line after which another worker may have written so: this one may have left early."""
_SHOWN_LINE: Final = 50
"""What showing a line costs, where reading one costs 1: Airflow's own logging takes milliseconds."""
_NOT_FOUND: Final = 404
_TURN: Final = 1000
"""After work of so much cost the event loop has its turn: hundreds of jobs share it."""


_followed: Final[set[asyncio.Task[None]]] = set()
"""Followings that are under way in this process."""


@dataclass
class StalledGang:
    """Warns once where each worker stands still, after the log of one has said so, or has been quiet."""

    client: "AsyncJobClient"
    log: "Logger"
    clock: Callable[[], float]
    look_at: float | None = None

    def read(self, line: str) -> None:
        self.look_at = self.clock() + (_STALL_SECONDS if stall_in(line) else _QUIET_SECONDS)

    async def poll(self, job: dict[str, Any]) -> None:
        if self.look_at is None or self.clock() < self.look_at:
            return
        self.look_at = None
        await compare_workers(self.client.api, job, training := TrainingLog())
        if training.stall:
            self.log.warning("%s %s", JobRef.of(job).title, training.stall)


@dataclass
class ReplicaLogs:
    """Shows what is new in the logs of the chosen replicas of a job, by an entered client.

    Leaving the context ends the following. Nothing that goes wrong with a log is more than a warning.
    """

    client: "AsyncJobClient"
    ref: JobRef
    chosen: Sequence[str]
    """The replicas, such as `worker-0`."""
    log: "Logger"
    take_figures: Callable[[str], object]
    """Called with each line of the first one."""
    _: KW_ONLY
    follows: bool = False
    """Whether lines are shown as they are written, in tasks of their own, or when `poll` is called."""
    cursors: InitVar[Mapping[str, Sequence[Any]] | None] = None
    """Where an earlier reading has got to."""
    shown_until: float = 0.0
    """Seconds since the epoch: of lines written before, only figures are taken, since they are in the task's log."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self, cursors: Mapping[str, Sequence[Any]] | None) -> None:
        self.complete: set[str] = set()
        """Replicas whose whole log was shown."""
        self._cursors = {label: LogCursor((cursors or {}).get(label)) for label in self.chosen}
        self._pods: dict[str, replicas.Pod] = {}
        self._followers: dict[str, PodFollower] = {}
        self._cut_short: set[str] = set()
        self._budgets: dict[str, LogBudget] = {}
        self._stalled = StalledGang(self.client, self.log, self.clock)
        self._restarts: int | None = None
        self._loses_pods = self._warned = False
        self._work = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for follower in self._followers.values():
            await follower.cancel()

    def positions(self) -> dict[str, list[Any]]:
        return {label: cursor.state() for label, cursor in self._cursors.items() if cursor.since}

    async def poll(self, job: Mapping[str, Any]) -> None:
        """Show what has been written since the last poll."""
        if not self.chosen or job_state(job) in ("", CREATED):
            return
        run_policy = (job.get("spec") or {}).get("runPolicy") or {}
        self._loses_pods = run_policy.get("cleanPodPolicy") == "All"
        try:
            await self._find_pods(job)
            each = (self._poll_one(label, pod) for label, pod in self._pods.items())
            for failure in await asyncio.gather(*each, return_exceptions=True):
                if isinstance(failure, ApiError) and failure.code == _NOT_FOUND:
                    self._restarts = None  # a restart has deleted the pod: they are listed anew
                elif isinstance(failure, Exception):
                    self._warn(failure)
            await self._stalled.poll(dict(job))
        except Exception as e:
            self._warn(e)

    async def _poll_one(self, label: str, pod: replicas.Pod) -> None:
        """Look at one log. One that takes its time is read on at the next poll: it holds up no lease of the job."""
        has_room = self._loses_pods and len(_followed) < _MOST_FOLLOWED
        if self.follows or label in self._followers or has_room:
            await self._follow(label, pod)
            return
        async with asyncio.timeout(_POLL_SECONDS):
            await self._read(label, pod["metadata"]["name"], _POLL_BYTES)

    async def drain(self, pods: Iterable[replicas.Pod]) -> None:
        """Show the rest of the logs of pods that have ended: the last lines of each, whatever was left out."""
        last = {label_of(pod): pod for pod in pods if label_of(pod) in self._cursors and has_log(pod)}
        for label in [each for each in self._followers if each not in last]:
            await self._settle(label)  # its pod is gone, and what it still wrote may be under way
        for label, pod in last.items():
            name = pod["metadata"]["name"]
            if (follower := self._followers.get(label)) is not None and follower.log.uid == pod["metadata"]["uid"]:
                await follower.cancel()
            else:
                await self._settle(label)
            try:
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._read(label, name, to_the_end=True)
                self.complete.add(label)
            except Exception as e:
                why = "that took too long" if isinstance(e, TimeoutError) else message(e)
                self.log.warning(
                    "[%s] The log was not read whole (%s), and figures from its middle may be missing. All of it, "
                    "while the pod is there: kubectl logs -n %s %s",
                    label,
                    why,
                    self.ref.namespace,
                    name,
                )
                with contextlib.suppress(Exception):
                    async with asyncio.timeout(_TAIL_SECONDS):
                        await self._read(label, name, tail=_TAIL_LINES, to_the_end=True)
        for budget in self._budgets.values():
            await self._emit(budget.finish())
        self.complete -= self._cut_short

    async def _follow(self, label: str, pod: replicas.Pod) -> None:
        """Begin to follow a pod's log, unless that is under way, and show what was kept back of it."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if (before := self._followers.get(label)) is not None and before.log.uid == uid:
            await self._emit(self._budget(label, name).release())
            return
        await self._settle(label)

        async def take(text: str) -> None:
            await self._show(label, name, text)

        def ended(task: asyncio.Task[None]) -> None:
            _followed.discard(task)
            if not task.cancelled() and (e := task.exception()) is not None:
                self.log.warning("[%s] gave up reading the log: %s", label, message(e))

        self._followers[label] = follower = PodFollower(self._log_of(label, name, uid), take)
        _followed.add(follower.task)
        follower.task.add_done_callback(ended)

    async def _settle(self, label: str) -> None:
        """Let the following of a pod that has ended, or is gone, come to its end: another's log begins anew."""
        if (follower := self._followers.pop(label, None)) is None:
            return
        await asyncio.wait({follower.task}, timeout=_SETTLE_SECONDS)
        await follower.cancel()
        (self.complete if follower.is_whole else self._cut_short).add(label)
        self._cursors[label] = LogCursor()

    def _log_of(self, label: str, name: str, uid: str = "") -> PodLog:
        """Return a pod's log from where the cursor is. It goes on through any outage: the wait for the job decides."""
        return PodLog(
            self.client.api,
            self.ref.namespace,
            name,
            uid,
            cursor=self._cursors[label],
            outage=Outage(math.inf),
            on_trouble=lambda why: self.log.warning("[%s] %s", label, why),
        )

    async def _find_pods(self, job: Mapping[str, Any]) -> None:
        """List the pods only when they may be others than at the last poll: it is the dearest of the requests."""
        restarts = (job.get("status") or {}).get("restarts") or 0
        if restarts == self._restarts and len(self._pods) == len(self.chosen):
            return
        pods = await self.client.replica_pods(self.ref)
        self._restarts = restarts
        self._pods = {
            label: pod for pod in pods for label in [label_of(pod)] if label in self._cursors and has_log(pod)
        }

    async def _read(
        self, label: str, pod: str, limit: float = math.inf, *, tail: int | None = None, to_the_end: bool = False
    ) -> None:
        """Read on from where the cursor is, up to a limit of characters that were not read before."""
        fresh = 0
        await self._emit(self._budget(label, pod).release())
        async with contextlib.aclosing(self._log_of(label, pod).lines(tail=tail, to_the_end=to_the_end)) as lines:
            async for text in lines:
                await self._show(label, pod, text)
                fresh += len(text)
                if fresh > limit:
                    return

    async def _show(self, label: str, pod: str, text: str) -> None:
        """Take a line's figures, and show it if the task's log has room for it."""
        if not is_part(text):
            if label == self.chosen[0]:
                self.take_figures(text)
                self._stalled.read(text)
            if not self.shown_until or self._cursors[label].moment >= self.shown_until:
                await self._emit(self._budget(label, pod).take(f"[{label}] {text}"))
        await self._give_way(1 + len(text) // 1024)

    async def _emit(self, lines: Iterable[str]) -> None:
        left = iter(lines)
        try:
            for line in left:
                self.log.info("%s", line)
                await self._give_way(_SHOWN_LINE)
        except asyncio.CancelledError:  # of a follower: the cursor is behind these lines
            for line in left:
                self.log.info("%s", line)
            raise

    async def _give_way(self, cost: int) -> None:
        """Count work, and let others of the loop have their turn when it was enough."""
        self._work += cost
        if self._work >= _TURN:
            self._work = 0
            await asyncio.sleep(0)

    def _budget(self, label: str, pod: str) -> LogBudget:
        if label not in self._budgets:
            at_once, per_second = _ALLOWANCE[self.follows]
            said = notice(label, pod, self.ref.namespace)
            self._budgets[label] = LogBudget(at_once=at_once, per_second=per_second, notice=said, clock=self.clock)
        return self._budgets[label]

    def _warn(self, e: Exception) -> None:
        if not self._warned:
            self._warned = True
            self.log.warning("Could not read the replicas' logs; will try again: %s", message(e))
