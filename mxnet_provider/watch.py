"""The wait for a job, from its creation to the event with which it ends: the only one, for triggers and workers alike.

A trigger awaits it on the triggerer's loop; a worker runs it by `run_in_thread`.
"""

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mxnet_operator.client.outage import OF_THE_SERVER
from mxnet_operator.client.whole_result import with_whole_result
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.readers.long_result import reference
from mxnet_provider.exceptions import MXNetJobUnreachableError
from mxnet_provider.hooks.api_errors import is_transient, message
from mxnet_provider.job import replicas
from mxnet_provider.job.event import Completion, Event, completion_of
from mxnet_provider.job.holder import LOST, NOT_RENEWED, LeaseRenewer, title_of
from mxnet_provider.job.metrics import Metrics
from mxnet_provider.job.polling import retries_of_polls, until_next_poll
from mxnet_provider.job.state_log import StateLog
from mxnet_provider.replica_logs import ReplicaLogs

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.job_client import AsyncJobClient
    from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger

_STOP_LOOKS: Final = 0.2
"""Seconds between two looks of a worker's main thread at whether its task was killed."""
_JOIN_SECONDS: Final = 2.0

T = TypeVar("T")


@dataclass
class JobWatch:
    """One wait for a job, on an entered client."""

    client: "AsyncJobClient"
    wait: "MXNetJobTrigger"
    """The job, and how long it is waited for: a trigger says it, in a worker as well."""
    logs: ReplicaLogs
    log: "Logger"
    metrics: Metrics
    renewer: LeaseRenewer | None
    """Holds the job, and renews its lease; None for nothing."""
    observe: Callable[[Mapping[str, Any]], None]
    """Called with the job after each poll."""

    def __post_init__(self) -> None:
        self.ref = self.wait.ref
        self._gave_up_on: Exception | None = None
        self._states = StateLog(self.ref)
        self._retries = retries_of_polls(
            self.wait.poll_interval, self.wait.api_outage_tolerance, warn=self.log.warning, lease=self.wait.lease
        )

    async def run_or_raise(self) -> Event:
        """Wait as `run`, for who can't go on without an API server.

        Raises:
            MXNetJobUnreachableError: the API server was away for too long.
            ApiError: it rejects the look at the job.
        """
        ended = await self.run()
        if self._gave_up_on is None:
            return ended
        if ended.status == "refused":
            raise self._gave_up_on
        raise MXNetJobUnreachableError(ended.message) from self._gave_up_on

    async def run(self) -> Event:
        """Wait until the job need not be waited for any more, its states and its log appearing in the task's log."""
        async with self.logs:
            while True:
                try:
                    job, found, pods = await self._retries.until_answered(self._look)
                except OF_THE_SERVER as e:
                    self._gave_up_on = e
                    return self._event(self._unreachable(e), None, [])
                if job is not None and job["metadata"]["uid"] == self.ref.uid:
                    self._states.report(job, self.log)
                    self.observe(job)
                    self.metrics.status(job)
                    is_over = found is not None and found.is_over
                    await (self.logs.drain(pods) if is_over else self.logs.poll(job))
                if found is not None:
                    return self._event(found, job, pods)
                await asyncio.sleep(until_next_poll(job, self.wait.poll_interval))

    async def _look(self) -> tuple[dict[str, Any] | None, Completion | None, list[dict[str, Any]]]:
        """Read the job, hold it, and return it; with its pods and its whole result where it is over."""
        job = await self.client.get_job(self.ref)
        found = completion_of(
            job,
            self.ref.uid,
            now=time.time(),
            deadline=self.wait.deadline,
            startup_timeout=self.wait.startup_timeout,
            reattached_at=self.wait.reattached_at,
        )
        if job is not None and found is None:
            await self._renew(job)
        if job is None or found is None or not found.is_over:
            return job, found, []
        pods = await self._pods()
        return await self._with_whole_result(job, pods), found, pods

    async def _with_whole_result(self, job: dict[str, Any], pods: Sequence[replicas.Pod]) -> dict[str, Any]:
        if self.wait.result_of is None:
            return job
        text = (job.get("status") or {}).get("result") or replicas.result_text(pods, self.wait.result_of)
        if (wanted := reference(text)) is None:
            return job

        def warn(why: str) -> None:
            self.log.warning("%s The task returns none.", why)

        return await with_whole_result(self.client.api, job, wanted, replica=self.wait.result_of, on_loss=warn)

    def _unreachable(self, e: Exception) -> Completion:
        if not is_transient(e):
            return Completion("refused", message(e))
        return Completion("error", f"The API server has been away for {self._retries.outage.away:.0f} s: {message(e)}")

    async def _renew(self, job: Mapping[str, Any]) -> None:
        """Hold the job as it was just read, and renew its lease where it is time to."""
        if self.renewer is None:
            return
        lost_before, patch = self.renewer.lost_to, self.renewer.due(job)
        if self.renewer.lost_to and not lost_before:
            self.log.warning(LOST, self.ref.title, title_of(self.renewer.lost_to))
        if patch is None:
            return
        try:
            if await self.client.patch_job(self.ref, patch):
                self.renewer.written()
        except ApiError as e:
            if e.is_transient:
                raise
            self.renewer.give_up()
            self.log.error(NOT_RENEWED, self.ref.title, message(e))  # noqa: TRY400

    async def _pods(self) -> list[dict[str, Any]]:
        try:
            return await self.client.replica_pods(self.ref)
        except ApiError as e:
            if e.is_transient:
                raise
            self.log.warning("Could not read the job's pods, nor how each ended: %s", message(e))
            return []

    def _event(self, found: Completion, job: Mapping[str, Any] | None, pods: Sequence[replicas.Pod]) -> Event:
        return Event.of(
            found,
            self.ref,
            job,
            pods,
            result_of=self.wait.result_of,
            logs_shown=sorted(self.logs.complete),
            log_cursors=self.logs.positions(),
            metrics=self.metrics.history(),
        )


class StoppedError(Exception):
    """What ran was stopped before its end."""


def run_in_thread(coroutine: Coroutine[Any, Any, T], stop: threading.Event | None = None) -> T:
    """Run a coroutine on an event loop in a thread of its own.

    Not on the main thread: Airflow raises AirflowTaskTimeout from a signal handler, and an event loop swallows what is
    raised in one of its callbacks.

    Raises:
        StoppedError: `stop` was set before its end.
    """
    done: concurrent.futures.Future[T] = concurrent.futures.Future()
    started: concurrent.futures.Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = concurrent.futures.Future()

    async def main() -> None:
        task = asyncio.ensure_future(coroutine)
        started.set_result((asyncio.get_running_loop(), task))
        try:
            done.set_result(await task)
        except BaseException as e:
            done.set_exception(e)

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="watch", daemon=True)
    thread.start()
    try:
        while stop is None or not stop.is_set():
            if concurrent.futures.wait([done], timeout=_STOP_LOOKS).done:
                return done.result()
    finally:
        if not done.done():
            loop, task = started.result()
            loop.call_soon_threadsafe(task.cancel)
            thread.join(_JOIN_SECONDS)
    raise StoppedError
