"""The end of a job whose task was ended by a user or by a timeout: pure, the same for workers and triggers."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from mxnet_operator.api import names
from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.client.job_client import Deletion, Leave, Request
from mxnet_provider.job.event import success_is_known
from mxnet_provider.job.holder import Holds, holder_of, title_of

Action = Literal["delete", "keep", "suspend"]
ACTIONS: Final = ("delete", "keep", "suspend")


def request(
    job: Mapping[str, Any] | None, uid: str, action: Action, holds: Holds, *, is_cleared: bool = False
) -> Request:
    """Return the request by which an unfinished job ends with its task.

    Nothing is done to a job that has finished, is being deleted already, is another one of the same name, or is held
    by another: a later try of the task, or another triggerer. Nor is one ended whose success is known already, unless
    the task was cleared: its result isn't wanted.
    """
    if job is None or job["metadata"]["uid"] != uid or action == "keep":
        return Leave()
    if job_state(job) in TERMINAL or job["metadata"].get("deletionTimestamp"):
        return Leave()
    if action == "suspend" and is_suspended(job):
        return Leave()
    if not holds(holder_of(job)):
        return Leave(f"{title_of(holder_of(job))} waits for it now")
    if success_is_known(job) and not is_cleared:
        return Leave("all its Workers have succeeded, and it succeeds within a minute")
    return Deletion.of(job) if action == "delete" else _suspension(job, suspend=True)


def not_ended(title: str, error: str, lease: int | None, namespace: str) -> str:
    """Word what a task's log says where a job could not be ended; `lease` is in seconds."""
    limit = "it has no lease" if lease is None else f"its lease of {lease} s ends it"
    return (
        f"{title} could not be ended, and goes on: {error}. Unless that is done by hand, {limit}. To look for such jobs"
        f" and delete them: airflow mxnet cleanup-jobs --namespace {namespace} --delete"
    )


def removal(job: Mapping[str, Any] | None, uid: str, holds: Holds) -> Request:
    if job is None or job["metadata"]["uid"] != uid or job["metadata"].get("deletionTimestamp"):
        return Leave()
    if not holds(holder_of(job)):
        return Leave(f"{title_of(holder_of(job))} waits for it now")
    return Deletion.of(job)


def is_suspended_by_airflow(job: Mapping[str, Any]) -> bool:
    """Whether an earlier end of the task suspended the job, and nobody has resumed it."""
    return is_suspended(job) and names.SUSPENDED_BY_AIRFLOW_ANNOTATION in (job["metadata"].get("annotations") or {})


def is_suspended(job: Mapping[str, Any]) -> bool:
    return bool(((job.get("spec") or {}).get("runPolicy") or {}).get("suspend"))


def resumption(job: Mapping[str, Any]) -> dict[str, Any]:
    return _suspension(job, suspend=False)


def _suspension(job: Mapping[str, Any], *, suspend: bool) -> dict[str, Any]:
    return {
        "metadata": {
            "resourceVersion": job["metadata"]["resourceVersion"],
            "annotations": {names.SUSPENDED_BY_AIRFLOW_ANNOTATION: "true" if suspend else None},
        },
        "spec": {"runPolicy": {"suspend": suspend}},
    }
