"""When an Argo Workflow is at its end, for the job of one of its steps, which it owns."""

from collections.abc import Mapping
from typing import Any, Final

WORKFLOW_LABEL: Final = "workflows.argoproj.io/workflow"
"""On jobs and pods of a workflow: its name. `argo logs` shows what pods with it print."""
_KIND: Final = "Workflow"
_ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})


def owner(job: Mapping[str, Any]) -> str | None:
    """The name of the workflow that owns a job; None where none does."""
    return next((ref["name"] for ref in _owners(job)), None)


def why_over(workflow: Mapping[str, Any] | None, job: Mapping[str, Any]) -> str:
    """Why a workflow, or None for one that isn't there, is at its end; empty where it goes on."""
    if workflow is None:
        return "is gone"
    owners = {ref["uid"] for ref in _owners(job)}
    if owners and workflow["metadata"]["uid"] not in owners:
        return "is gone, and another has its name"
    if "deletionTimestamp" in workflow["metadata"]:
        return "is being deleted"
    if shutdown := workflow["spec"].get("shutdown"):
        return f"is being shut down ({shutdown})"
    return f"is over ({phase_of(workflow)})" if has_ended(workflow) else ""


def has_ended(workflow: Mapping[str, Any]) -> bool:
    """Whether nothing of a workflow runs any more, its exit handler included."""
    return phase_of(workflow) in _ENDED


def phase_of(workflow: Mapping[str, Any]) -> str:
    """What a workflow says of itself; empty before Argo has seen it."""
    return (workflow.get("status") or {}).get("phase") or ""


def _owners(job: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    references = job["metadata"].get("ownerReferences") or ()
    return [ref for ref in references if ref["kind"] == _KIND and ref["apiVersion"].startswith("argoproj.io/")]
