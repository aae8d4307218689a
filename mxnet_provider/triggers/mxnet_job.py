"""The triggers that wait for an MXJob on Airflow's triggerer, so that no worker has to."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from airflow.triggers.base import BaseTrigger, TriggerEvent

from mxnet_provider import airflow_versions
from mxnet_provider.job import kill, replicas
from mxnet_provider.job.event import Event
from mxnet_provider.job.holder import Lease, LeaseRenewer, token_of_run
from mxnet_provider.job.metrics import Metrics
from mxnet_provider.replica_logs import ReplicaLogs
from mxnet_provider.triggers.ending import ask_early, end_job
from mxnet_provider.triggers.job_trigger import JobTrigger
from mxnet_provider.watch import JobWatch

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.job_client import AsyncJobClient

_LONGEST_HOLD: Final = 10.0
_RESTARTED_AFTER: Final = 300.0
"""A trigger that starts so many seconds after its task was deferred has probably run before.

A busy triggerer starts one late, and must not leave out the log. After an earlier restart lines are shown twice.
"""
_IS_TOLD_OF_KILLS: Final = hasattr(BaseTrigger, "on_kill")


@dataclass(kw_only=True, eq=False, repr=False)
class MXNetJobTrigger(JobTrigger):
    """Wait for one MXJob, show its log, and send one event when it need not be waited for any more.

    It may be run again from its start at any time, by another triggerer too: all that it changes is who holds the job,
    and the job's lease. Only when a user ends the deferred task (`on_kill`) is the job deleted or suspended, if it
    still is the one with this uid and nobody else holds it by now.
    """

    uid: str
    """Another job of the same name is not waited for."""
    deadline: float | None = None
    """Until when the job may take, in seconds since the epoch."""
    startup_timeout: float | None = 600.0
    """Seconds for which the job may wait for its pods to run."""
    get_logs: bool = True
    log_replicas: Sequence[str] = field(default_factory=lambda: ["worker-0"])
    log_cursors: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Where an earlier reading of the logs has got to."""
    result_of: str | None = replicas.RESULT_OF
    """The replica whose termination message is the result; None for none."""
    on_kill_action: kill.Action = "delete"
    propagation_policy: str = "Foreground"
    stats_tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of the gauges: `dag_id` and `task_id`."""
    deferred_at: float | None = None
    """When the task was deferred, in seconds since the epoch."""
    holder: str | None = None
    """The token of the task's try, which stands in the job."""
    lease: int | None = None
    """The lease of the job in seconds, which is renewed; None for none."""
    reattached_at: float | None = None
    """When the task's try found the job of an earlier one, from where `startup_timeout` counts, in seconds since the
    epoch; None for a job that it created."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._was_cancelled = False
        self._metrics: Metrics | None = None
        self.renewer = self._begin_renewer()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        ask_early(self.task_instance)
        try:
            with self._storable_errors():
                async with self.connected() as hook:
                    event = await self.watch(hook, self.log, self.renewer)
            if event.status == "timeout" and airflow_versions.TIMEOUT_SPANS_DEFERRALS:
                await end_job(self, None)
            await self._let_the_scheduler_see_the_deferral()
        except asyncio.CancelledError:
            if self.trigger_id is None:  # no triggerer, but `airflow dags test`: nobody will go on with it
                await end_job(self, None)
            self._was_cancelled = True
            raise
        yield TriggerEvent(event.payload())  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """Delete or suspend the job, if it has not finished, the task no longer waits for it, and nobody else does."""
        await end_job(self, self.task_instance)

    async def cleanup(self) -> None:
        """Before Airflow 3.3, which calls no `on_kill`: as that, where the trigger was cancelled and has not ended."""
        if _IS_TOLD_OF_KILLS or not self._was_cancelled:
            return
        ran_out = self.deadline is not None and time.time() >= self.deadline
        if ran_out and not airflow_versions.TIMEOUT_SPANS_DEFERRALS:
            return  # its worker has been resumed to end the job
        await end_job(self, self.task_instance)

    def _begin_renewer(self) -> LeaseRenewer | None:
        if self.holder is None:
            return None
        action = self.on_kill_action
        lease = None if self.lease is None or action == "keep" else Lease(self.lease, action)
        run = token_of_run(self.holder, secrets.token_hex(4))
        return LeaseRenewer(run, self.holder, lease, is_written=False)

    async def _let_the_scheduler_see_the_deferral(self) -> None:
        """Send no event sooner than one poll_interval after the deferral.

        Airflow's scheduler fails a task that runs again before it has read that its executor let go of it ("finished
        with state success, but the task instance's state attribute is running"), as happens on a busy machine.
        """
        if self.deferred_at is not None:
            not_before = self.deferred_at + min(self.poll_interval, _LONGEST_HOLD)
            await asyncio.sleep(max(not_before - time.time(), 0.0))

    async def watch(
        self,
        client: "AsyncJobClient",
        log: "Logger",
        renewer: LeaseRenewer | None,
        *,
        in_worker: bool = False,
        observe: Callable[[Mapping[str, Any]], None] = lambda _job: None,
    ) -> Event:
        """Wait for the job; `in_worker` shows lines as they are written, and raises where the wait can't go on."""
        now, deferred_at = time.time(), self.deferred_at
        is_rerun = deferred_at is not None and now - deferred_at > _RESTARTED_AFTER
        if is_rerun and self.get_logs:
            log.info("Waiting for %s again; its earlier log lines are above, or in its pods.", self.ref.title)
        self._metrics = metrics = self._metrics or Metrics(self.stats_tags, log.warning)
        logs = ReplicaLogs(
            client,
            self.ref,
            self.log_replicas if self.get_logs else (),
            log,
            metrics.read,
            follows=in_worker,
            cursors=self.log_cursors,
            shown_until=now if is_rerun else 0.0,
        )
        watch = JobWatch(client, self, logs, log, metrics, renewer, observe)
        try:
            return await (watch.run_or_raise() if in_worker else watch.run())
        finally:
            self.log_cursors = logs.positions()
