"""Default values that kube-apiserver sets in built-in objects at creation, as far as somebody here reads them."""

from typing import Final

from mxnet_operator.local.apiserver.json_values import Object, at, fill
from mxnet_operator.local.apiserver.keyed_objects import fill_in_secret
from mxnet_operator.local.apiserver.resources import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    SERVICES,
    Resource,
)

_GATED: Final[Object] = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
"""Condition of a new pod with scheduling gates; it stays until a scheduler places or rejects the pod without them."""
_STATUSES: Final[dict[Resource, Object]] = {
    NAMESPACES: {"phase": "Active"},
    PERSISTENT_VOLUME_CLAIMS: {"phase": "Pending"},
    SERVICES: {"loadBalancer": {}},
}


def fill_in(resource: Resource, obj: Object) -> None:
    """Set default values in an object, in place."""
    if resource is PODS:
        _pod(obj)
    elif resource is SERVICES:
        _service(obj)
    elif resource is PERSISTENT_VOLUME_CLAIMS:
        obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    elif resource is SECRETS:
        fill_in_secret(obj)
    elif resource is NAMESPACES:
        name = obj["metadata"].get("name", "")
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
        obj["spec"] = {"finalizers": ["kubernetes"]}


def initial_status(resource: Resource, obj: Object) -> Object | None:
    """Return the status of a new object, which the server sets whatever the request has."""
    if resource is PODS:
        status: Object = {"phase": "Pending"}
        return status | {"conditions": [_GATED]} if at(obj, "spec", "schedulingGates") else status
    return _STATUSES.get(resource)


def _pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    for field, value in (
        ("restartPolicy", "Always"),
        ("schedulerName", "default-scheduler"),
        ("terminationGracePeriodSeconds", 30),
    ):
        fill(spec, field, value)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.setdefault("resources", {})
        for kind in ("limits", "requests"):
            for name, amount in (resources.get(kind) or {}).items():
                if isinstance(amount, int | float):  # A cluster stores text; clients write back what they have read.
                    resources[kind][name] = str(amount)
        if limits := resources.get("limits"):
            resources["requests"] = limits | (resources.get("requests") or {})
        for port in container.get("ports") or ():
            fill(port, "protocol", "TCP")


def _service(service: Object) -> None:
    spec = service.setdefault("spec", {})
    fill(spec, "type", "ClusterIP")
    fill(spec, "clusterIP", "None")  # no proxy runs here: every Service is headless
    fill(spec, "sessionAffinity", "None")
    for port in spec.get("ports") or ():
        fill(port, "protocol", "TCP")
        if "port" in port:
            port.setdefault("targetPort", port["port"])
