"""Pods as the controller makes them, as far as a scheduler looks at them."""

from typing import Any

GPU = "nvidia.com/gpu"


def gang_pods(
    job: str,
    *asked: int,
    attempt: int = 0,
    since: str = "2026-11-22T12:00:00Z",
    name: str = "",
    minimum: int | None = None,
) -> list[dict[str, Any]]:
    """The pods of one attempt of a job, of which each asks for so many GPUs; `name` and `minimum` are the gang's."""
    gang = f"{name or f'attempt-{attempt}'}/{len(asked)}/{since}" + (f"/{minimum}" if minimum else "")
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": job, "uid": f"uid-of-{job}", "controller": True}
    return [
        {
            "metadata": {
                "name": f"{job}-worker-{index}",
                "namespace": "default",
                "uid": f"{job}-{index}-{attempt}",
                "creationTimestamp": since,
                "annotations": {"mxjob.kubeflow.org/gang-member": gang},
                "ownerReferences": [owner],
            },
            "spec": {
                "containers": [{"resources": {"limits": {GPU: str(gpus)} if gpus else {}}}],
            },
            "status": {"phase": "Pending"},
        }
        for index, gpus in enumerate(asked)
    ]


def lone_pod(name: str, gpus: int, *, since: str = "2026-11-22T12:00:00Z") -> dict[str, Any]:
    """A pod that belongs to no job."""
    (pod,) = gang_pods(name, gpus, since=since)
    del pod["metadata"]["annotations"], pod["metadata"]["ownerReferences"]
    return pod


def bound(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod with a node."""
    return {**pod, "spec": {**pod["spec"], "nodeName": "local"}}
