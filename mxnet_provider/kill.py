"""What becomes of a job whose task was ended by a user or by a timeout: pure, the same for workers and triggers."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from mxnet_operator.api.conditions import TERMINAL, job_state

Action = Literal["delete", "keep", "suspend"]
ACTIONS: Final = ("delete", "keep", "suspend")
ATTEMPTS: Final = 5
"""How often a suspension is tried while the job keeps changing under it."""

SUSPENDED_BY_AIRFLOW: Final = "mxjob.kubeflow.org/suspended-by-airflow"
"""Annotation that tells our own suspension from a user's or a queue's: only ours is undone by a retry."""


def request(job: Mapping[str, Any] | None, uid: str, action: Action) -> Literal["delete"] | dict[str, Any] | None:
    """`delete`, the patch to send, or None where nothing is to be done.

    Nothing is done to a job that has finished, is going already, or is another one of the same name.
    """
    if job is None or job["metadata"]["uid"] != uid or action == "keep":
        return None
    if job_state(job) in TERMINAL or job["metadata"].get("deletionTimestamp"):
        return None
    if action == "delete":
        return "delete"
    if is_suspended(job):
        return None
    return _suspension(job, suspend=True)


def is_suspended_by_airflow(job: Mapping[str, Any]) -> bool:
    """Whether an earlier end of the task suspended the job, and nobody has resumed it."""
    return is_suspended(job) and SUSPENDED_BY_AIRFLOW in (job["metadata"].get("annotations") or {})


def is_suspended(job: Mapping[str, Any]) -> bool:
    """Whether the job is asked to have no pods."""
    return bool(((job.get("spec") or {}).get("runPolicy") or {}).get("suspend"))


def resumption(job: Mapping[str, Any]) -> dict[str, Any]:
    """The patch that undoes our suspension."""
    return _suspension(job, suspend=False)


def _suspension(job: Mapping[str, Any], *, suspend: bool) -> dict[str, Any]:
    return {
        "metadata": {
            "resourceVersion": job["metadata"]["resourceVersion"],
            "annotations": {SUSPENDED_BY_AIRFLOW: "true" if suspend else None},
        },
        "spec": {"runPolicy": {"suspend": suspend}},
    }
