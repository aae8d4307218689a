"""Decision on what a retry finds: which job of an earlier try it goes on with, and when it makes a new one. Pure.

Before a job is created, an intent with a random token is written to Airflow's task state store; the job carries the
token as a label. A try that finds the intent looks for the job: what has the token is ours, at whatever moment the try
before ended. An Airflow before 3.3 has no such store: there the labels of the jobs say it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from mxnet_operator.api.conditions import FAILED, SUCCEEDED, TERMINAL, job_state
from mxnet_provider.job import holder, task_labels
from mxnet_provider.job.kill import is_suspended_by_airflow
from mxnet_provider.job.task_memory import Record


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the try that begins, by Airflow."""

    number: int
    generation: int
    """The task's `max_tries` now."""
    retries: int
    """The task's `retries` now."""


Decision = Literal["create", "create_same", "replace", "reattach", "resume", "reuse"]


def decide(record: Record | None, current: Try, found: Mapping[str, Any] | None, *, reuse_succeeded: bool) -> Decision:
    """Return what a try begins with, where Airflow has a task state store (3.3).

    `found` is what has the record's name on the cluster.

    Returns:
        `create`: a new job, nothing of an older one is of use. `create_same`: the job that was intended, and never
        made. `replace`: as `create`, and the older job is to go first. `reattach`: wait for the older one. `resume`: as
        `reattach`, after undoing our own suspension. `reuse`: the older one's result is the result.
    """
    if record is None:
        return "create"
    ours = found is not None and is_ours(found, record)
    if record.generation != current.generation:
        in_worker = record.waits_in == "worker" and record.phase != "finished"
        if found is not None and ours and was_lost(found, in_worker=in_worker):
            return _wait_for(found)
        return "replace" if ours else "create"
    reuse = reuse_succeeded and _is_retry(current, after=record.last_try, retries=record.retries)
    if record.phase == "finished":
        succeeded = (record.outcome or {}).get("status") == "succeeded"
        return "reuse" if succeeded and reuse else "create"
    if found is None:
        return "create_same" if record.phase == "submitting" else "create"
    if not ours or not _is_usable(found, reuse_succeeded=reuse):
        return "create"
    return _wait_for(found)


class ByLabels(msgspec.Struct, frozen=True):
    """Decision on what a try begins with, by the labels of its task's jobs."""

    decision: Literal["create", "reattach", "resume"]
    job: Mapping[str, Any] | None = None
    """The job to wait for; None to create one."""
    replaced: tuple[Mapping[str, Any], ...] = ()
    """Jobs from before the task was cleared, which are to go first."""
    finished: tuple[Mapping[str, Any], ...] = ()
    """Jobs of earlier tries that have finished, and that are of no use to this one."""


def decide_by_labels(jobs: Sequence[Mapping[str, Any]], current: Try, *, reuse_succeeded: bool) -> ByLabels:
    """Return what a try begins with, where Airflow has no task state store, by the jobs that have its task's labels."""
    lost = [job for job in jobs if was_lost(job, in_worker=holder.is_of_worker(holder.holder_of(job)))]
    older = tuple(job for job in jobs if _is_from_before_a_clear(job, current) and job not in lost)
    usable, finished = [], []
    for job in jobs:
        is_retry = _is_retry(current, after=task_labels.try_that_made(job) or 1, retries=task_labels.retries_of(job))
        is_same = task_labels.generation_of(job) == current.generation or (
            job in lost and _is_from_before_a_clear(job, current)
        )
        if is_same and _is_usable(job, reuse_succeeded=reuse_succeeded and is_retry):
            usable.append(job)
        elif is_same and job_state(job) in TERMINAL:
            finished.append(job)
    found = max(usable, key=lambda job: (job["metadata"]["creationTimestamp"], job["metadata"]["name"]), default=None)
    return ByLabels("create" if found is None else _wait_for(found), found, older, tuple(finished))


def is_ours(job: Mapping[str, Any], record: Record) -> bool:
    if record.ref.uid and (job.get("metadata") or {}).get("uid") != record.ref.uid:
        return False
    return task_labels.token_of(job) == record.token


def was_lost(job: Mapping[str, Any], *, in_worker: bool) -> bool:
    """Whether the job of a task that was cleared goes on because Airflow failed the task, and no user ended it.

    Clear marks a task that runs, without counting its tries anew; its worker ends the job. A deferred task is counted
    anew, and its trigger ends the job. So what goes on after a new count, and was waited for `in_worker`, is the job of
    a task that had failed: its worker died, or the API server was away for too long.
    """
    if job_state(job) in TERMINAL or job["metadata"].get("deletionTimestamp") or is_suspended_by_airflow(job):
        return False
    return in_worker


def _is_from_before_a_clear(job: Mapping[str, Any], current: Try) -> bool:
    """Whether a job is of a generation before this one; of two, the later may be the lower, where `retries` fell."""
    made_in = task_labels.generation_of(job)
    if made_in is None or made_in == current.generation:
        return False
    return made_in < current.generation or (task_labels.try_that_made(job) or current.number) < current.number


def _is_retry(current: Try, *, after: int, retries: int | None) -> bool:
    """Whether a try follows another by itself, so that a job which succeeded meanwhile does for it.

    It doesn't where the task's `retries` are others by now: Airflow may have cleared the task to the same `max_tries`.
    Nor is a try of the same number one: `airflow tasks test` runs a try that there was, and a run that is deleted and
    made again with its id begins with the first.
    """
    return current.number > after and retries in (None, current.retries)


def _is_usable(job: Mapping[str, Any], *, reuse_succeeded: bool) -> bool:
    useless = {FAILED} if reuse_succeeded else {FAILED, SUCCEEDED}
    return not job["metadata"].get("deletionTimestamp") and job_state(job) not in useless


def _wait_for(job: Mapping[str, Any]) -> Literal["reattach", "resume"]:
    return "resume" if is_suspended_by_airflow(job) and job_state(job) != SUCCEEDED else "reattach"
