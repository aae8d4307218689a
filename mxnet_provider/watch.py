"""The wait for a job, from its creation to the event with which it ends: the only one, for triggers and workers alike.

A trigger awaits it on the triggerer's loop; a worker runs it by `run_in_thread`.
"""

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mxnet_operator.client.whole_result import with_whole_result
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.readers.long_result import reference
from mxnet_provider.exceptions import MXNetJobUnreachableError
from mxnet_provider.hooks.api_errors import OF_THE_SERVER, is_transient, message
from mxnet_provider.job import replicas
from mxnet_provider.job.event import Completion, Event, completion_of
from mxnet_provider.job.holder import LOST, NOT_RENEWED, LeaseRenewer, title_of
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.metrics import Metrics
from mxnet_provider.job.polling import retries_of_polls, through_outage, until_next_poll
from mxnet_provider.job.sensor_state import SensorEvent
from mxnet_provider.job.state_log import StateLog
from mxnet_provider.options import WaitOptions
from mxnet_provider.replica_logs import ReplicaLogs

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.job_client import AsyncJobClient

_STOP_LOOKS: Final = 0.2
"""Seconds between two looks of a worker's main thread at whether its task was killed."""
_JOIN_SECONDS: Final = 2.0

T = TypeVar("T")


class JobWatch:
    """One wait for a job.

    Args:
        client: Of the job's cluster, entered.
        ref: The job: the one with this uid is waited for.
        waiting: How often it is polled, and for how long it and the API server may be away.
        logs: Of its replicas.
        log: The task's.
        metrics: Figures of the training, of the job's status and of its log.
        renewer: What holds the job, and renews its lease; None for nothing.
        lease: Seconds of the lease; None for none.
        deadline: Until when the job may take, in seconds since the epoch.
        reattached_at: When this try found the job of an earlier one, in seconds since the epoch.
        result_of: The replica whose termination message is the result; None for none.
        observe: Called with the job after each poll.
    """

    def __init__(
        self,
        client: "AsyncJobClient",
        ref: JobRef,
        waiting: WaitOptions,
        logs: ReplicaLogs,
        log: "Logger",
        *,
        metrics: Metrics,
        renewer: LeaseRenewer | None = None,
        lease: float | None = None,
        deadline: float | None = None,
        reattached_at: float | None = None,
        result_of: str | None = None,
        observe: Callable[[Mapping[str, Any]], None] = lambda _job: None,
    ) -> None:
        self._gave_up_on: Exception | None = None
        self._client = client
        self._ref = ref
        self._waiting = waiting
        self._logs = logs
        self._log = log
        self._metrics = metrics
        self._renewer = renewer
        self._deadline = deadline
        self._reattached_at = reattached_at
        self._result_of = result_of
        self._observe = observe
        self._states = StateLog(ref)
        self._retries = retries_of_polls(
            waiting.poll_interval, waiting.api_outage_tolerance, warn=log.warning, lease=lease
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
        async with self._logs:
            while True:
                try:
                    job, found, pods = await through_outage(self._retries, self._look)
                except OF_THE_SERVER as e:
                    self._gave_up_on = e
                    return self._event(self._unreachable(e), None, [])
                if job is not None and job["metadata"]["uid"] == self._ref.uid:
                    self._states.report(job, self._log)
                    self._observe(job)
                    self._metrics.status(job)
                    is_over = found is not None and found.is_over
                    await (self._logs.drain(pods) if is_over else self._logs.poll(job))
                if found is not None:
                    return self._event(found, job, pods)
                await asyncio.sleep(until_next_poll(job, self._waiting.poll_interval))

    async def _look(self) -> tuple[dict[str, Any] | None, Completion | None, list[dict[str, Any]]]:
        """Read the job, hold it, and return it; with its pods and its whole result where it is over."""
        job = await self._client.get_job(self._ref)
        found = completion_of(
            job,
            self._ref.uid,
            now=time.time(),
            deadline=self._deadline,
            startup_timeout=self._waiting.startup_timeout,
            reattached_at=self._reattached_at,
        )
        if job is not None and found is None:
            await self._renew(job)
        if job is None or found is None or not found.is_over:
            return job, found, []
        pods = await self._pods()
        return await self._with_whole_result(job, pods), found, pods

    async def _with_whole_result(self, job: dict[str, Any], pods: Sequence[replicas.Pod]) -> dict[str, Any]:
        if self._result_of is None:
            return job
        text = (job.get("status") or {}).get("result") or replicas.result_text(pods, self._result_of)
        if (wanted := reference(text)) is None:
            return job

        def warn(why: str) -> None:
            self._log.warning("%s The task returns none.", why)

        return await with_whole_result(self._client.api, job, wanted, replica=self._result_of, on_loss=warn)

    def _unreachable(self, e: Exception) -> Completion:
        if not is_transient(e):
            return Completion("refused", message(e), "Unreachable")
        away = f"The API server has been away for {self._retries.outage.away:.0f} s: {message(e)}"
        return Completion("error", away, "Unreachable")

    async def _renew(self, job: Mapping[str, Any]) -> None:
        """Hold the job as it was just read, and renew its lease where it is time to."""
        if self._renewer is None:
            return
        lost_before, patch = self._renewer.lost_to, self._renewer.due(job)
        if self._renewer.lost_to and not lost_before:
            self._log.warning(LOST, self._ref.title, title_of(self._renewer.lost_to))
        if patch is None:
            return
        try:
            if await self._client.patch_job(self._ref, patch):
                self._renewer.written()
        except ApiError as e:
            if e.is_transient:
                raise
            self._renewer.give_up()
            self._log.error(NOT_RENEWED, self._ref.title, message(e))

    async def _pods(self) -> list[dict[str, Any]]:
        try:
            return await self._client.replica_pods(self._ref)
        except ApiError as e:
            if e.is_transient:
                raise
            self._log.warning("Could not read the job's pods, nor how each ended: %s", message(e))
            return []

    def _event(self, found: Completion, job: Mapping[str, Any] | None, pods: Sequence[replicas.Pod]) -> Event:
        return Event.of(
            found,
            self._ref,
            job,
            pods,
            result_of=self._result_of,
            logs_shown=sorted(self._logs.complete),
            log_cursors=self._logs.cursors(),
            outage_s=round(self._retries.outage.longest, 1),
            metrics=self._metrics.history(),
        )


async def until_settled(
    client: "AsyncJobClient",
    ref: JobRef,
    log: "Logger",
    settle: Callable[[Mapping[str, Any] | None], SensorEvent | None],
    *,
    poll_interval: float,
    api_outage_tolerance: float,
) -> SensorEvent:
    """Wait until `settle` has decided on the job that has the name, or the API server is away for too long."""
    states, retries = StateLog(ref), retries_of_polls(poll_interval, api_outage_tolerance, warn=log.warning)
    while True:
        try:
            job = await through_outage(retries, partial(client.get_job, ref))
        except OF_THE_SERVER as e:
            return SensorEvent(status="error" if is_transient(e) else "refused", message=message(e))
        if (decision := settle(job)) is not None:
            return decision
        if job is not None:
            states.report(job, log)
        await asyncio.sleep(until_next_poll(job, poll_interval))


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
