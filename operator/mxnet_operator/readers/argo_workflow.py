"""State of the Argo Workflow that owns a job, of which the job is one step."""

from collections.abc import Mapping
from typing import Any, Final

WORKFLOW_LABEL: Final = "workflows.argoproj.io/workflow"
"""Label of a workflow's jobs and pods: its name. `argo logs` shows the output of pods with it."""
_KIND: Final = "Workflow"
_ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})


def owner(job: Mapping[str, Any]) -> str | None:
    """Return the name of the workflow that owns a job; None where none does."""
    return next((ref["name"] for ref in _owners(job)), None)


def why_over(workflow: Mapping[str, Any] | None, job: Mapping[str, Any]) -> str:
    """Return why a workflow (None: not found) is over; empty where it goes on.

    A stopped workflow (`argo stop`) goes on until its exit handler, which may have jobs of its own, has finished.
    """
    if workflow is None:
        return "is gone"
    owners = {ref["uid"] for ref in _owners(job)}
    if owners and workflow["metadata"]["uid"] not in owners:
        return "is gone, and another has its name"
    if "deletionTimestamp" in workflow["metadata"]:
        return "is being deleted"
    if (shutdown := workflow["spec"].get("shutdown")) and not is_stopped(workflow):
        return f"is being shut down ({shutdown})"
    return f"is over ({phase_of(workflow)})" if has_ended(workflow) else ""


def is_stopped(workflow: Mapping[str, Any]) -> bool:
    """Return whether only the exit handler of a workflow may still run."""
    return bool(workflow["spec"].get("shutdown") == "Stop")


def has_ended(workflow: Mapping[str, Any]) -> bool:
    """Return whether nothing of a workflow runs any more, its exit handler included."""
    return phase_of(workflow) in _ENDED


def phase_of(workflow: Mapping[str, Any]) -> str:
    """Return the workflow's `status.phase`; empty before Argo's controller has seen it."""
    return (workflow.get("status") or {}).get("phase") or ""


def _owners(job: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    references = job["metadata"].get("ownerReferences") or ()
    return [ref for ref in references if ref["kind"] == _KIND and ref["apiVersion"].startswith("argoproj.io/")]
