"""Runs of `mxjob run` as a step of an Argo Workflow: its progress, and whether a stopped step's job is needed."""

import contextlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from mxnet_operator.cli.output.times import moment
from mxnet_operator.cli.server.connection import Client
from mxnet_operator.kube.resources import PODS, WORKFLOWS
from mxnet_operator.readers.argo_workflow import is_stopped, why_over
from mxnet_operator.readers.training_log import TrainingLog

_POD_NAME: Final = "POD_NAME"
"""Environment variable with the name of the step's pod."""
_PROGRESS_FILE: Final = "ARGO_PROGRESS_FILE"
_DEADLINE: Final = "ARGO_DEADLINE"
"""Environment variable with the time when Argo ends the step for the workflow's deadline; year 1 without one."""
_ON_EXIT_LABEL: Final = "workflows.argoproj.io/on-exit"
"""Label of the pods of a workflow's exit handler, which `argo stop` does not end."""
_EARLY: Final = timedelta(seconds=5)
"""Tolerance: a pod may be stopped this much before its deadline, which has whole seconds."""


class ProgressFile:
    """File from which Argo's executor reads a step's progress: the epochs that have ended, of all, as `3/20`.

    Argo names it in the container's `environment`; without a name, nothing is written.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._path = environment.get(_PROGRESS_FILE)
        self._written = ""

    def update(self, training: TrainingLog) -> None:
        """Write the progress if it has changed and the number of epochs is known; Argo does without it."""
        ended, epochs = training.epochs_ended(), training.epochs_wanted
        if not self._path or ended is None or not epochs:
            return
        text = f"{max(0, min(ended, epochs))}/{epochs}"
        if text != self._written:
            self._written = text
            with contextlib.suppress(OSError):
                Path(self._path).write_text(f"{text}\n", encoding="utf-8")


async def why_unwanted(client: Client, job: dict[str, Any], name: str, environment: Mapping[str, str]) -> str:
    """Return why the workflow of this name no longer needs its job, such as "is being deleted"; empty if it does.

    A stopped workflow needs the jobs of its exit handler, among whose pods may be that of this `environment`.

    Raises:
        ApiError, ApiUnavailable: the request fails.
    """
    namespace = job["metadata"]["namespace"]
    workflow = await client.find(WORKFLOWS.path(namespace, name))
    why = why_over(workflow, job)
    if why or workflow is None or not is_stopped(workflow):
        return why
    pod = await own_pod(client, namespace, environment) or {"metadata": {}}
    return "" if _ON_EXIT_LABEL in (pod["metadata"].get("labels") or {}) else "is being shut down (Stop)"


async def own_pod(client: Client, namespace: str, environment: Mapping[str, str]) -> dict[str, Any] | None:
    """Read the pod of the step that this process is; None where that isn't known.

    Raises:
        ApiError, ApiUnavailable: the request fails.
    """
    name = environment.get(_POD_NAME)
    return await client.find(PODS.path(namespace, name)) if name else None


def time_is_over(environment: Mapping[str, str], pod: dict[str, Any] | None, now: datetime) -> bool:
    """Whether the deadline has passed that the workflow, or the step's `timeout`, sets for a step's pod."""
    now += _EARLY
    deadline = moment(environment.get(_DEADLINE))
    if deadline is not None and deadline.year > 1 and now >= deadline:
        return True
    seconds = ((pod or {}).get("spec") or {}).get("activeDeadlineSeconds")
    started = moment(((pod or {}).get("status") or {}).get("startTime"))
    return seconds is not None and started is not None and now >= started + timedelta(seconds=seconds)
