"""Waiting for a job in the process of its task: the same verdicts and the same event as the trigger's."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mxnet_provider import api_errors, replicas
from mxnet_provider.event import Event
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.job_ref import JobRef
from mxnet_provider.metrics import History, Metrics
from mxnet_provider.operators.replica_logs import ReplicaLogs
from mxnet_provider.options import LogOptions, WaitOptions
from mxnet_provider.state_log import StateLog
from mxnet_provider.summary import summary
from mxnet_provider.verdict import Verdict

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job import MXNetJobHook


def wait(
    hook: "MXNetJobHook",
    ref: JobRef,
    waiting: WaitOptions,
    logs: LogOptions,
    *,
    result_of: str | None,
    stats_tags: Mapping[str, str],
    log: "Logger",
    stop: threading.Event,
    keep: Callable[[Mapping[str, Any]], None],
) -> Event:
    """Wait until there is a verdict on the job, its log and its states appearing in the task's log.

    `keep` is called with the job after each look, to renew what has to be.

    Raises:
        MXNetJobError: `stop` was set before.
    """
    metrics = Metrics(stats_tags, log.warning)
    shown = ReplicaLogs(hook, ref, logs.log_replicas if logs.get_logs else (), log, metrics)
    told = StateLog(ref)

    def observe(current: dict[str, Any]) -> None:
        told.look(current, log)
        keep(current)
        shown.follow()

    with shown:
        waited = hook.wait(ref, **asdict(waiting), observe=observe, stop=stop)
        if waited is None:
            raise MXNetJobError(f"{ref.title} is no longer waited for, because the task was killed.")
        found, job = waited
        if _is_over(found):
            shown.drain()
    return end_of_waiting(
        hook,
        ref,
        found,
        job,
        result_of=result_of,
        log=log,
        logs_shown=shown.complete(),
        metrics=metrics.history(),
    )


def end_of_waiting(
    hook: "MXNetJobHook",
    ref: JobRef,
    found: Verdict,
    job: Mapping[str, Any] | None,
    *,
    result_of: str | None,
    log: "Logger",
    logs_shown: Sequence[str] = (),
    metrics: History | None = None,
) -> Event:
    """The event that a verdict on the job makes, with what its pods say where it is over."""
    over = job if _is_over(found) else None
    pods = [] if over is None else _pods(hook, ref, log)
    return Event(
        status=found.status,
        reason=found.reason,
        message=found.message,
        name=ref.name,
        namespace=ref.namespace,
        uid=ref.uid,
        failed_replicas=replicas.failures(pods),
        logs_shown=list(logs_shown),
        summary=None if over is None else summary(over, pods, result_of=result_of),
        metrics=metrics or {},
    )


def _is_over(found: Verdict) -> bool:
    return found.status in ("succeeded", "failed")


def _pods(hook: "MXNetJobHook", ref: JobRef, log: "Logger") -> list[dict[str, Any]]:
    try:
        return hook.replica_pods(ref)
    except Exception as e:
        if api_errors.refusal(e) is None:
            raise
        log.warning("Could not read the job's pods, and what became of each: %s", api_errors.message(e))
        return []
