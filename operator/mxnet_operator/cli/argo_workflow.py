"""Whether an Argo Workflow still wants the job of one of its steps, as the step's container asks when it is stopped."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api.argo_workflow import why_over
from mxnet_operator.cli.times import moment
from mxnet_operator.kube.resources import PODS, WORKFLOWS

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

_POD_NAME: Final = "POD_NAME"
"""The variable in which the step's container finds its pod's name."""
_DEADLINE: Final = "ARGO_DEADLINE"
"""When Argo ends the step because of the workflow's deadline; the year 1 where it has none."""
_EARLY: Final = timedelta(seconds=5)
"""How much sooner a pod may be stopped: its own deadline is in whole seconds."""


async def why_unwanted(client: "Client", job: dict[str, Any], name: str) -> str:
    """Why the workflow of this name has no use for its job any more: "is being deleted"; empty where it has.

    Raises:
        ApiError, ApiUnavailable: the server doesn't tell.
    """
    return why_over(await _find(client, WORKFLOWS.path(job["metadata"]["namespace"], name)), job)


async def step_time_is_over(client: "Client", namespace: str, environment: Mapping[str, str]) -> bool:
    """Whether the time has run out that the workflow, or the step's `timeout`, gives the pod that this runs in.

    Raises:
        ApiError, ApiUnavailable: the server doesn't tell.
    """
    name = environment.get(_POD_NAME)
    pod = await _find(client, PODS.path(namespace, name)) if name else None
    return time_is_over(environment, pod, datetime.now(UTC))


def time_is_over(environment: Mapping[str, str], pod: dict[str, Any] | None, now: datetime) -> bool:
    """Whether a container's environment, or its pod, where it is known, says that its time has run out."""
    now += _EARLY
    deadline = moment(environment.get(_DEADLINE))
    if deadline is not None and deadline.year > 1 and now >= deadline:
        return True
    seconds = ((pod or {}).get("spec") or {}).get("activeDeadlineSeconds")
    started = moment(((pod or {}).get("status") or {}).get("startTime"))
    return seconds is not None and started is not None and now >= started + timedelta(seconds=seconds)


async def _find(client: "Client", path: str) -> dict[str, Any] | None:
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

    try:
        return await client.get(path)
    except ApiError as error:
        if error.code != 404:
            raise
        return None
