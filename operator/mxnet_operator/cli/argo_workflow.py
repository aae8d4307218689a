"""Whether an Argo Workflow still wants the job of one of its steps, as the step's container asks when it is stopped."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.kube.resources import Resource

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

WORKFLOWS: Final = Resource("argoproj.io", "v1alpha1", "workflows")
KIND: Final = "Workflow"
_DEADLINE: Final = "ARGO_DEADLINE"
"""When Argo ends the step, in each container of its pods; the year 1 where it doesn't."""
_EARLY: Final = timedelta(seconds=5)
"""How much sooner than that a pod may be stopped: its own deadline is in whole seconds."""
_ENDED: Final = frozenset({"Succeeded", "Failed", "Error"})


async def why_unwanted(client: "Client", job: dict[str, Any], name: str) -> str:
    """Why the workflow of this name has no use for its job any more: "is being deleted"; empty where it has.

    Raises:
        ApiError, ApiUnavailable: the server doesn't tell.
    """
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

    try:
        workflow = await client.get(WORKFLOWS.path(job["metadata"]["namespace"], name))
    except ApiError as error:
        if error.code != 404:
            raise
        return "is gone"
    owners = {ref["uid"] for ref in job["metadata"].get("ownerReferences") or () if ref["kind"] == KIND}
    if owners and workflow["metadata"]["uid"] not in owners:
        return "is gone, and another has its name"
    if "deletionTimestamp" in workflow["metadata"]:
        return "is being deleted"
    if shutdown := workflow["spec"].get("shutdown"):
        return f"is being shut down ({shutdown})"
    phase = (workflow.get("status") or {}).get("phase")
    return f"is over ({phase})" if phase in _ENDED else ""


def deadline_is_over(environment: Mapping[str, str], now: datetime | None = None) -> bool:
    """Whether the time that the workflow gives this step has run out; False where it gives it no limit."""
    try:
        deadline = datetime.fromisoformat(environment[_DEADLINE])
    except (KeyError, ValueError):
        return False
    if deadline.year == 1:
        return False
    return (now or datetime.now(UTC)) + _EARLY >= deadline
