"""Conclusion that a task draws from the end of the wait for its job: its error, what is shown, what is ended. Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from airflow.providers.common.compat.sdk import AirflowSkipException, AirflowTaskTimeout

from mxnet_provider.exceptions import (
    MXNetJobDeletedError,
    MXNetJobError,
    MXNetJobFailedError,
    MXNetJobStartupTimeoutError,
)
from mxnet_provider.job import replicas
from mxnet_provider.job.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """End of a task whose wait for its job is over."""

    error: BaseException | None = None
    """Error that the task ends with, a BaseException where Airflow's is one; None where its job has succeeded."""
    shows_logs: bool = False
    """Whether the task's log shows the logs of the replicas that failed."""
    shows_events: bool = False
    """Whether it shows the cluster's warnings about the job."""
    ends_job: bool = False
    """Whether the job still runs, and is deleted, suspended or kept as for a task that is killed."""


def conclude(ended: Event, title: str, *, skip_on_exit_code: Collection[int]) -> Conclusion:
    match ended.status:
        case "succeeded":
            return Conclusion()
        case "failed":
            error: BaseException = MXNetJobFailedError(f"{title} failed: {ended.message}")
            if skip := replicas.reason_to_skip(ended.failed_replicas, skip_on_exit_code):
                error = AirflowSkipException(f"{title} failed, and {skip}: {ended.message}")
            return Conclusion(error=error, shows_logs=True, shows_events=True)
        case "deleted":
            return Conclusion(error=MXNetJobDeletedError(f"{title} {ended.message}."))
        case "timeout":
            return Conclusion(error=AirflowTaskTimeout(f"{title} {ended.message}."), shows_logs=True, ends_job=True)
        case "startup_timeout":
            late = MXNetJobStartupTimeoutError(f"{title} {ended.message}.")
            return Conclusion(error=late, shows_logs=True, shows_events=True, ends_job=True)
    return Conclusion(error=MXNetJobError(f"{title}: {ended.message}"))
