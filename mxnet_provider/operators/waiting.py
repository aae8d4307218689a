"""Waiting for a job in the process of its task: the same completion and the same event as the trigger's."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mxnet_operator.readers.log_lines import split_lines
from mxnet_provider.exceptions import MXNetJobError
from mxnet_provider.hooks import api_errors
from mxnet_provider.job.completion import Completion
from mxnet_provider.job.event import Event
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.metrics import History, Metrics
from mxnet_provider.job.result_in_log import LOST, UNREADABLE, ResultInLog, result_in_log
from mxnet_provider.job.state_log import StateLog
from mxnet_provider.operators.replica_logs import ReplicaLogs
from mxnet_provider.options import LogOptions, WaitOptions

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
    lease: float | None,
    reattached_at: float | None = None,
    deadline: float | None = None,
) -> Event:
    """Wait until the wait for the job is over, its log and its states appearing in the task's log.

    `keep` is called with the job after each poll, to renew what has to be: a lease of so many seconds, if any.
    `reattached_at` and `deadline` are as for `completion_of`.

    Raises:
        MXNetJobError: `stop` was set before.
    """
    metrics = Metrics(stats_tags, log.warning)
    shown = ReplicaLogs(hook, ref, logs.log_replicas if logs.get_logs else (), log, metrics)
    states = StateLog(ref)

    def observe(current: dict[str, Any]) -> None:
        states.report(current, log)
        keep(current)
        shown.follow()

    with shown:
        waited = hook.wait(
            ref,
            **asdict(waiting),
            reattached_at=reattached_at,
            deadline=deadline,
            lease=lease,
            observe=observe,
            stop=stop,
        )
        if waited is None:
            raise MXNetJobError(f"{ref.title} is no longer waited for, because the task was killed.")
        found, job = waited
        if found.is_over:
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
    found: Completion,
    job: Mapping[str, Any] | None,
    *,
    result_of: str | None,
    log: "Logger",
    logs_shown: Sequence[str] = (),
    metrics: History | None = None,
) -> Event:
    """Make the event of a completion, with what its pods say where it is over."""
    over = job if found.is_over else None
    pods = [] if over is None else _pods(hook, ref, log)
    there = None if over is None else result_in_log(over, pods, result_of)
    if over is not None and there is not None:
        over = _with_whole_result(hook, over, there, log)
    return Event.of(found, ref, over, pods, result_of=result_of, logs_shown=list(logs_shown), metrics=metrics or {})


def _with_whole_result(
    hook: "MXNetJobHook", job: Mapping[str, Any], there: ResultInLog, log: "Logger"
) -> Mapping[str, Any]:
    try:
        if there.pod is not None:
            stream = hook.open_log(there.pod, job["metadata"]["namespace"], tail_lines=there.wanted.tail_lines)
            if stream is not None:
                with stream as chunks:
                    completed = there.completed(job, split_lines(chunks))
                if completed is not None:
                    return completed
    except Exception as e:
        log.warning(UNREADABLE, there.pod, e)
    log.warning(LOST, there.wanted.loss)
    return job


def _pods(hook: "MXNetJobHook", ref: JobRef, log: "Logger") -> list[dict[str, Any]]:
    try:
        return hook.replica_pods(ref)
    except Exception as e:
        if api_errors.refusal(e) is None:
            raise
        log.warning("Could not read the job's pods, nor how each ended: %s", api_errors.message(e))
        return []
