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
    in_seconds,
    limit_in_seconds,
    require_result_from,
    whole_seconds,
)

if TYPE_CHECKING:
    from airflow.sdk import Context


class TaskOptionsMixin(ClusterAccessMixin, JobDescriptionMixin):
    """An operator whose task waits for the MXJob that it is given.

    Args:
        wait_for_completion: If False, the task succeeds once the job has been created, and `deferrable` has no meaning.
        deferrable: Wait in the triggerer instead of a worker. Default: `[operators] default_deferrable`.
        durable: Whether a retry goes on with the job of the try before. If False, each try makes a job of its own.
        reuse_succeeded_on_retry: Whether a retry whose job has succeeded meanwhile returns that job's result.
        poll_interval: Seconds (or a timedelta) between two polls of the job while it runs, give or take a fifth. While
            it does not, or waits for something, it is polled every five seconds at least, so that the task's log
            says for what.
        startup_timeout: Seconds (or a timedelta) that the job may wait for its pods to run before the task fails and
            ends it; None, or infinity, for no limit. The time in which the job is suspended does not count, nor what
            tries before this one have waited.
        api_outage_tolerance: Seconds (or a timedelta) that the API server may be away before the task fails; the job is
            left running, for a retry to go on with.
        get_logs: Whether the job's log appears in the task's log. Without it there is no XCom `metrics`.
        log_replicas: The replicas whose logs appear while they run, such as `worker-0` or `scheduler-0`.
        log_tail_on_failure: How many of the last lines to show of a failed replica whose log was not shown before.
        log_events_on_failure: Whether to show the cluster's warnings about a job that failed or did not start.
        on_finish_action: What is done with a finished job: `keep` leaves it to its `ttlSecondsAfterFinished`.
        on_kill_action: What is done with an unfinished job when its task is killed, cleared or out of time: `delete`,
            `suspend` (a retry resumes it), or `keep` (a retry goes on waiting for it).
        propagation_policy: `Foreground` keeps a deleted job visible until its pods are gone, `Background` does not.
        skip_on_exit_code: An exit code, or several: where the job fails and a replica of it has ended with one of
            them, the task is skipped and does not fail, as in KubernetesPodOperator.
        termination_grace_period: Seconds (or a timedelta) that the pods have to end when the job is deleted, over the
            manifest's.
        callbacks: A class derived from MXNetJobCallback, or several: functions that are called in the worker while the
            task goes on, as KubernetesPodOperator has them.
        result_from: Where the result comes from; None for no result.
        lease: For how long (seconds, or a timedelta) the job goes on when nobody waits for it any more: a dead worker
            or triggerer, a deletion that could not be delivered. Then the controller deletes or suspends it, as
            `on_kill_action` says. It lasts four times `poll_interval` at least, and a retry that is due is waited for:
            for as long as `retry_delay` and the rules of an ExceptionRetryPolicy say. Beside a `retry_policy` of your
            own, choose it longer than that ever delays.
            None, `wait_for_completion=False` and `on_kill_action="keep"` leave the job without: it may run on for ever.
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
        self.lease = in_seconds("lease", lease)
        self.poll_interval = in_seconds("poll_interval", poll_interval)
        self.startup_timeout = limit_in_seconds("startup_timeout", startup_timeout)
        self.api_outage_tolerance = in_seconds("api_outage_tolerance", api_outage_tolerance)
        self.get_logs = get_logs
        self.log_replicas = self.default_log_replicas if log_replicas is None else log_replicas
        self.log_tail_on_failure = log_tail_on_failure
        self.log_events_on_failure = log_events_on_failure
        self.on_finish_action = on_finish_action
        self.on_kill_action = on_kill_action
        self.propagation_policy = propagation_policy
        self.termination_grace_period = whole_seconds("termination_grace_period", termination_grace_period)
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
        given = self.max_retry_delay
        longest = timedelta(seconds=given) if isinstance(given, int | float) else given
        return delay_before_retry(
            context["ti"].try_number,
            context["ti"].max_tries,
            self.retry_delay,
            factor=self.retry_exponential_backoff,
            longest=longest,
            instead=airflow_versions.delays_by_policy(self),
        )
