"""The arguments of a task beside its job: how it waits, what its log shows, and how the job ends with it."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.providers.common.compat.sdk import conf

from mxnet_provider import airflow_versions
from mxnet_provider.callbacks import MXNetJobCallback, callbacks_of
from mxnet_provider.cluster import ClusterAccessMixin
from mxnet_provider.job import kill
from mxnet_provider.job.holder import Lease
from mxnet_provider.operators.described_job import JobDescriptionMixin
from mxnet_provider.operators.lease_times import delay_before_retry, lease_seconds
from mxnet_provider.options import (
    DEFAULT_LEASE,
    EndOptions,
    FinishAction,
    LogOptions,
    Propagation,
    WaitOptions,
    exit_codes,
    from_attributes,
    require_result_from,
)

if TYPE_CHECKING:
    from airflow.sdk import Context


class TaskOptionsMixin(ClusterAccessMixin, JobDescriptionMixin):
    """An operator whose task waits for the MXJob that it is given.

    Args:
        wait_for_completion: If False, the task succeeds once the job is created, and `deferrable` has no
            effect.
        deferrable: Wait in the triggerer instead of a worker; unset, `[operators] default_deferrable`.
        durable: If True, a retry continues the job of the try before; if False, each try creates a job.
        reuse_succeeded_on_retry: If the job succeeded after the previous try died, return its result instead of
            training again.
        poll_interval: Time between two polls of a running job, give or take a fifth. A job that waits is polled
            every five seconds at least.
        startup_timeout: Time within which the job's pods must run, or the task fails and ends the job; None for
            no limit. A suspension doesn't count.
        api_outage_tolerance: Time for which the API server may be unreachable before the task fails. The job
            goes on, and a retry finds it.
        get_logs: Show the job's log in the task's log. If False, there is no XCom `metrics`.
        log_replicas: Replicas whose logs are shown: `["worker-0", "server-0"]`; unset, `worker-0`.
        log_tail_on_failure: Number of last lines shown of a failed replica whose log was not shown before.
        log_events_on_failure: Show the cluster's warnings about a job that failed or did not start.
        on_finish_action: What happens to a finished job. `keep`: it stays until its TTL. `delete`: it is
            deleted. `delete_succeeded`: failed jobs are kept.
        on_kill_action: What happens to an unfinished job when its task is killed, cleared or out of time.
            `suspend`: a retry resumes it. `keep`: a retry waits for it.
        propagation_policy: `Foreground` keeps a deleted job visible until its pods are gone, `Background`
            doesn't.
        skip_on_exit_code: If a replica of a failed job exited with this code, or one of these, the task is
            skipped instead of failed.
        termination_grace_period: Time that the pods have to end when the job is deleted; unset, the manifest's.
        callbacks: Class or classes derived from `MXNetJobCallback`, whose functions are called in the worker.
        result_from: Source of the result: worker 0's `/dev/termination-log`. None for no result.
        lease: Time after which the controller ends a job that no worker or trigger waits for any more, as
            `on_kill_action` says. It is extended to four times `poll_interval` at least, and by the delay of a
            retry that is due. None, `wait_for_completion=False` and `on_kill_action="keep"`: no lease, and the
            job may run on for ever.
    """

    template_fields: Sequence[str] = (*JobDescriptionMixin.template_fields, *ClusterAccessMixin.template_fields)
    default_log_replicas: ClassVar[Sequence[str]] = ("worker-0",)

    def __init__(
        self,
        *,
        wait_for_completion: bool = True,
        deferrable: bool | None = None,
        durable: bool = True,
        reuse_succeeded_on_retry: bool = True,
        poll_interval: timedelta | float = WaitOptions.poll_interval,
        startup_timeout: timedelta | float | None = WaitOptions.startup_timeout,
        api_outage_tolerance: timedelta | float = WaitOptions.api_outage_tolerance,
        get_logs: bool = LogOptions.get_logs,
        log_replicas: Sequence[str] | None = None,
        log_tail_on_failure: int = LogOptions.log_tail_on_failure,
        log_events_on_failure: bool = LogOptions.log_events_on_failure,
        on_finish_action: FinishAction = EndOptions.on_finish_action,
        on_kill_action: kill.Action = EndOptions.on_kill_action,
        propagation_policy: Propagation = EndOptions.propagation_policy,
        termination_grace_period: timedelta | int | None = None,
        skip_on_exit_code: int | Collection[int] | None = None,
        callbacks: type[MXNetJobCallback] | Sequence[type[MXNetJobCallback]] = (),
        result_from: Literal["termination_message"] | None = "termination_message",
        lease: timedelta | float | None = DEFAULT_LEASE,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.wait_for_completion = wait_for_completion
        self.deferrable = (
            conf.getboolean("operators", "default_deferrable", fallback=False) if deferrable is None else deferrable
        )
        self.skip_on_exit_code = exit_codes(skip_on_exit_code)
        self.durable = durable
        self.reuse_succeeded_on_retry = reuse_succeeded_on_retry
        require_result_from(result_from)
        self.result_from = result_from
        self.lease = lease
        self.poll_interval = poll_interval
        self.startup_timeout = startup_timeout
        self.api_outage_tolerance = api_outage_tolerance
        self.get_logs = get_logs
        self.log_replicas = self.default_log_replicas if log_replicas is None else log_replicas
        self.log_tail_on_failure = log_tail_on_failure
        self.log_events_on_failure = log_events_on_failure
        self.on_finish_action = on_finish_action
        self.on_kill_action = on_kill_action
        self.propagation_policy = propagation_policy
        self.termination_grace_period = termination_grace_period
        self.callbacks = callbacks_of(callbacks)
        _ = self._wait_options, self._log_options, self._end_options  # mistakes are raised where the DAG is parsed

    # What the attributes say: a cluster policy may have changed them since the DAG's author set them

    @property
    def _wait_options(self) -> WaitOptions:
        return from_attributes(WaitOptions, self)

    @property
    def _log_options(self) -> LogOptions:
        replicas = self.default_log_replicas if self.log_replicas is None else self.log_replicas
        return from_attributes(LogOptions, self, log_replicas=replicas)

    @property
    def _end_options(self) -> EndOptions:
        return from_attributes(EndOptions, self)

    def _lease(self, context: "Context") -> Lease | None:
        wanted, action = self._end_options.lease, self._end_options.on_kill_action
        if wanted is None or action == "keep" or not self.wait_for_completion:
            return None
        seconds = lease_seconds(wanted, self._wait_options.poll_interval, self._delay_before_retry(context))
        return Lease(seconds, action)

    def _delay_before_retry(self, context: "Context") -> float:
        longest = self.max_retry_delay
        return delay_before_retry(
            context["ti"].try_number,
            context["ti"].max_tries,
            self.retry_delay,
            factor=self.retry_exponential_backoff,
            longest=timedelta(seconds=longest) if isinstance(longest, int | float) else longest,
            instead=airflow_versions.delays_by_policy(self),
        )
