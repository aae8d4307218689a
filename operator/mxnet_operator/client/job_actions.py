"""Stop of a job, which keeps its status, logs and files, and its rerun as a new job."""

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.conditions import job_state
from mxnet_operator.api.conversion import without_server_fields
from mxnet_operator.client.jobs import (
    DeletedError,
    collections,
    pod_selector,
    pods_of,
    resource_of_job,
    until_finished,
)
from mxnet_operator.kube.resources import PODS
from mxnet_operator.readers.pods import ENDED

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

_QUEUE: Final = "kueue.x-k8s.io/"
_LONGEST_PREFIX: Final = 40


async def request_stop(client: "Client", job: dict[str, Any]) -> None:
    """Ask the controller to stop a job, not a later one of its name.

    Raises:
        ApiError: it is gone, or may not be changed.
    """
    metadata = job["metadata"]
    change = {"uid": metadata["uid"], "annotations": {names.STOP_ANNOTATION: "true"}}
    await client.patch(resource_of_job(job).path(metadata["namespace"], metadata["name"]), {"metadata": change})


async def until_stopped(client: "Client", job: dict[str, Any], on_change: Callable[[str], None]) -> str:
    """Wait until a job has ended and no pod of it runs; returns its state, empty if the job is gone.

    `on_change` is called with what is waited for.
    """
    state = ""
    with contextlib.suppress(DeletedError):
        state = job_state(await until_finished(client, job))
    if state:
        path = PODS.path(job["metadata"]["namespace"])
        async with contextlib.aclosing(collections(client, path, pod_selector(job))) as changes:
            async for pods in changes:
                running = [pod for pod in pods_of(job, pods.values()) if pod["status"].get("phase") not in ENDED]
                if not running:
                    break
                on_change(", ".join(sorted(pod["metadata"]["name"] for pod in running)))
    return state


def again(job: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of a job that runs a stored job again."""
    manifest, old = without_server_fields(job), job["metadata"]
    prefix = old.get("generateName") or f"{old['name'][:_LONGEST_PREFIX].rstrip('-.')}-"
    labels = {key: value for key, value in (old.get("labels") or {}).items() if key.startswith(_QUEUE)}
    spec = dict(manifest["spec"])
    if "runPolicy" in spec:
        spec["runPolicy"] = {key: value for key, value in spec["runPolicy"].items() if key != "suspend"}
    metadata = {"generateName": prefix, "namespace": old["namespace"], **({"labels": labels} if labels else {})}
    return {**manifest, "metadata": metadata, "spec": spec}
