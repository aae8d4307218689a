"""Small manifests to put into an API server."""

from typing import Any

JOBS = "/apis/kubeflow.org/v1/namespaces/{}/mxjobs"
PODS = "/api/v1/namespaces/{}/pods"
SERVICES = "/api/v1/namespaces/{}/services"
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"
SECRETS = "/api/v1/namespaces/{}/secrets"
CLAIMS = "/api/v1/namespaces/{}/persistentvolumeclaims"
EVENTS = "/api/v1/namespaces/{}/events"


def mxjob(name: str, *, labels: dict[str, str] | None = None, replicas: int = 1, **metadata: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "mxnet", "image": "mxjob/mxnet:1.9.1"}]}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": name, **({"labels": labels} if labels else {}), **metadata},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {"Worker": {"replicas": replicas, "template": template}}},
    }


def pod(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    node: str | None = None,
    owner: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, **({"labels": labels} if labels else {})}
    if owner:
        metadata["ownerReferences"] = [owned_by(owner)]
    spec = {"containers": [{"name": "main", "image": "busybox"}], **({"nodeName": node} if node else {}), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def config_map(
    name: str, *, labels: dict[str, str] | None = None, owner: dict[str, Any] | None = None, **data: str
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, **({"labels": labels} if labels else {})}
    if owner:
        metadata["ownerReferences"] = [owned_by(owner)]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def secret(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **fields}


def volume_claim(name: str, *, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
    return claim | ({"status": status} if status else {})


def owned_by(owner: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **more,
    }


def event(
    name: str, about: dict[str, Any], *, reason: str = "Happened", message: str = "something happened"
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": about["metadata"]["namespace"]},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": about["metadata"]["name"],
            "namespace": about["metadata"]["namespace"],
            "uid": about["metadata"]["uid"],
        },
        "reason": reason,
        "message": message,
        "type": "Normal",
        "source": {"component": "mxjob-controller"},
        "count": 1,
        "firstTimestamp": about["metadata"]["creationTimestamp"],
        "lastTimestamp": about["metadata"]["creationTimestamp"],
    }


def binding(pod: str, node: str) -> dict[str, Any]:
    """What a scheduler posts to a pod's `binding` to give it to a node."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
