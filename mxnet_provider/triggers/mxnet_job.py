"""The triggers that wait for an MXJob on Airflow's triggerer, so that no worker has to."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from airflow.triggers.base import BaseTrigger, TriggerEvent

from mxnet_operator.api import names
from mxnet_provider import airflow_versions
from mxnet_provider.cluster import ClusterConnection
from mxnet_provider.job import kill, replicas
from mxnet_provider.job.event import Event
from mxnet_provider.job.holder import Lease, LeaseRenewer, token_of_run
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.metrics import Metrics
from mxnet_provider.options import DEFAULT_CONNECTION, WaitOptions
from mxnet_provider.replica_logs import ReplicaLogs
from mxnet_provider.triggers.arguments import serialized
from mxnet_provider.triggers.connection import connected, storable_errors
from mxnet_provider.triggers.ending import TerminationRequest, ask_early, end_job
from mxnet_provider.watch import JobWatch

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook

_LONGEST_HOLD: Final = 10.0
_RESTARTED_AFTER: Final = 300.0
"""A trigger that starts so many seconds after its task was deferred has probably run before.

A busy triggerer starts one late, and must not leave out the log. After an earlier restart lines are shown twice.
"""
_IS_TOLD_OF_KILLS: Final = hasattr(BaseTrigger, "on_kill")


class MXNetJobTrigger(BaseTrigger):
    """Wait for one MXJob, show its log, and send one event when it need not be waited for any more.

    It may be run again from its start at any time, by another triggerer too: all that it changes is who holds the job,
    and the job's lease. Only when a user ends the deferred task (`on_kill`) is the job deleted or suspended, if it
    still is the one with this uid and nobody else holds it by now. Its arguments are references, never credentials.
    Arguments that a later release adds have defaults, none is ever taken away, and no default ever changes.

    Args:
        name: The job's name.
        namespace: The job's namespace.
        uid: The job's uid: another job of the same name is not waited for.
        api_version: The job's apiVersion.
        kind: The job's kind, for messages.
        plural: The resource's name in the API's paths.
        kubernetes_conn_id: Connection of type `kubernetes`, which the triggerer must be able to use too.
        in_cluster: Use the service account of the triggerer's pod.
        config_file: Path of a kubeconfig on the triggerer.
        cluster_context: A context of the kubeconfig.
        poll_interval: Seconds between two polls of the job while it just runs, give or take a fifth.
        deadline: Until when the job may take, in seconds since the epoch.
        startup_timeout: For how many seconds the job may wait for its pods to run.
        api_outage_tolerance: For how many seconds the API server may be away.
        get_logs: Whether the replicas' logs are shown.
        log_replicas: Which replicas' logs.
        log_cursors: Where an earlier reading of them has got to.
        result_of: The replica whose termination message is the result; None for none.
        on_kill_action: What is done with the job when a user ends the task.
        propagation_policy: How the job is deleted.
        stats_tags: Tags of the gauges: `dag_id` and `task_id`.
        deferred_at: When the task was deferred, in seconds since the epoch.
        holder: The token of the task's try, which stands in the job.
        lease: The lease of the job in seconds, which is renewed; None for none.
        reattached_at: When the task's try found the job of an earlier one, from where `startup_timeout` counts, in
            seconds since the epoch; None for a job that it created.
    """

    def __init__(
        self,
        *,
        name: str,
        namespace: str,
        uid: str,
        api_version: str = names.API_VERSION,
        kind: str = names.KIND,
        plural: str = names.PLURAL,
        kubernetes_conn_id: str | None = DEFAULT_CONNECTION,
        in_cluster: bool | None = None,
        config_file: str | None = None,
        cluster_context: str | None = None,
        poll_interval: float = 10.0,
        deadline: float | None = None,
        startup_timeout: float | None = 600.0,
        api_outage_tolerance: float = 600.0,
        get_logs: bool = True,
        log_replicas: Sequence[str] = ("worker-0",),
        log_cursors: Mapping[str, Sequence[Any]] = MappingProxyType({}),
        result_of: str | None = replicas.RESULT_OF,
        on_kill_action: kill.Action = "delete",
        propagation_policy: str = "Foreground",
        stats_tags: Mapping[str, str] = MappingProxyType({}),
        deferred_at: float | None = None,
        holder: str | None = None,
        lease: int | None = None,
        reattached_at: float | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ref = JobRef(name=name, namespace=namespace, uid=uid, api_version=api_version, kind=kind, plural=plural)
        self.kubernetes_conn_id = kubernetes_conn_id
        self.in_cluster = in_cluster
        self.config_file = config_file
        self.cluster_context = cluster_context
        self.poll_interval = poll_interval
        self.deadline = deadline
        self.startup_timeout = startup_timeout
        self.api_outage_tolerance = api_outage_tolerance
        self.get_logs = get_logs
        self.log_replicas = list(log_replicas)
        self.log_cursors = {label: list(state) for label, state in log_cursors.items()}
        self.result_of = result_of
        self.on_kill_action = on_kill_action
        self.propagation_policy = propagation_policy
        self.stats_tags = dict(stats_tags)
        self.deferred_at = deferred_at
        self.holder = holder
        self.lease = lease
        self.reattached_at = reattached_at
        self._was_cancelled = False
        self._renewer = self._begin_renewer()

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and the arguments from which Airflow makes the trigger again."""
        return serialized(self, MXNetJobTrigger.__init__)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for the job, and send how it ended."""
        ask_early(self.task_instance)
        try:
            with storable_errors(self.log):
                async with self._hook() as hook:
                    event = await self._watch(hook)
            if event.status == "timeout" and airflow_versions.TIMEOUT_SPANS_DEFERRALS:
                await self._end_job(None)
            await self._let_the_scheduler_see_the_deferral()
        except asyncio.CancelledError:
            if self.trigger_id is None:  # no triggerer, but `airflow dags test`: nobody will go on with it
                await self._end_job(None)
            self._was_cancelled = True
            raise
        yield TriggerEvent(event.payload())  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """Delete or suspend the job, if it has not finished, the task no longer waits for it, and nobody else does."""
        await self._end_job(self.task_instance)

    async def cleanup(self) -> None:
        """Before Airflow 3.3, which calls no `on_kill`: as that, where the trigger was cancelled and has not ended."""
        if _IS_TOLD_OF_KILLS or not self._was_cancelled:
            return
        ran_out = self.deadline is not None and time.time() >= self.deadline
        if ran_out and not airflow_versions.TIMEOUT_SPANS_DEFERRALS:
            return  # its worker has been resumed to end the job
        await self._end_job(self.task_instance)

    async def _end_job(self, ti: Any) -> None:
        end = TerminationRequest(
            self.ref,
            self.on_kill_action,
            self.propagation_policy,
            of_try=self.holder,
            run=None if self._renewer is None else self._renewer.token,
            lease=self.lease,
        )
        await end_job(end, ti, self._hook, self.log)

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

    def _hook(self) -> "AbstractAsyncContextManager[MXNetJobAsyncHook]":
        return connected(ClusterConnection.of(self), say=self.log.info, tolerance=self.api_outage_tolerance)

    async def _watch(self, hook: "MXNetJobAsyncHook") -> Event:
        now, deferred_at = time.time(), self.deferred_at
        is_rerun = deferred_at is not None and now - deferred_at > _RESTARTED_AFTER
        if is_rerun and self.get_logs:
            self.log.info("Waiting for %s again; its earlier log lines are above, or in its pods.", self.ref.title)
        metrics = Metrics(self.stats_tags, self.log.warning)
        logs = ReplicaLogs(
            hook,
            self.ref,
            self.log_replicas if self.get_logs else (),
            self.log,
            metrics.read,
            cursors=self.log_cursors,
            shown_until=now if is_rerun else 0.0,
        )
        waiting = WaitOptions(
            poll_interval=self.poll_interval,
            startup_timeout=self.startup_timeout,
            api_outage_tolerance=self.api_outage_tolerance,
        )
        return await JobWatch(
            hook,
            self.ref,
            waiting,
            logs,
            self.log,
            metrics=metrics,
            renewer=self._renewer,
            lease=self.lease,
            deadline=self.deadline,
            reattached_at=self.reattached_at,
            result_of=self.result_of,
        ).run()
