"""Description of the pods of a job, or of one of its roles; values may be placeholders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

from mxnet_operator.api import names


class Placeholder:
    """Value that a framework fills in later, such as an input parameter of an Argo template.

    It may stand for any value of a description, or for one within a list or mapping; nothing is checked of it here.
    """

    def one_if_any(self) -> "Placeholder":
        """Return 1 where this number of servers is not 0, else 0: the schedulers that they need."""
        raise NotImplementedError

    def none_if_one(self) -> "Placeholder":
        """Return 0 where this number of workers is 1, else the number: the servers that they get by default."""
        raise NotImplementedError


Object = Any
"""Kubernetes object: a mapping with camelCase keys, a model of `kubernetes.client`, or a placeholder."""
Text = str | Placeholder
Texts = Sequence[Text] | Placeholder
Number = int | Placeholder
Objects = Sequence[Object] | Placeholder
Seconds = timedelta | int | Placeholder

ROLES: Final = {"schedulers": names.SCHEDULER, "servers": names.SERVER, "workers": names.WORKER}
"""Replica types by field name, in the order in which their pods are created."""


@dataclass(frozen=True, kw_only=True)
class PodDescription:
    """Description of pods: what they run, where, and as whom; None leaves a field unset.

    Args:
        image: Image of the container `mxnet`.
        command: Command of the container: `["python", "train.py"]`.
        args: Arguments of the command: `["--epochs", "20"]`.
        env: Environment variables: `{"LR": "0.1"}`. A value may be an EnvVarSource (`{"secretKeyRef": {...}}`).
        env_from: EnvFromSources whose keys become variables.
        secrets: Names of Secrets whose keys become variables.
        config_maps: Names of ConfigMaps whose keys become variables.
        gpu_resource: Resource name of the GPUs; unset, `nvidia.com/gpu`.
        volumes: Volumes of the pod: `[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]`.
        volume_mounts: Mounts of the container: `[{"name": "data", "mountPath": "/data"}]`.
        image_pull_policy: When the node pulls the image; unset, Kubernetes' default.
        image_pull_secrets: Names of Secrets with the registry's credentials.
        init_containers: Containers that must finish before the training starts.
        node_selector: Node labels the pods require, as in a pod's nodeSelector: `{"pool": "gpus"}`.
        affinity: Affinity of the pods, as in a pod.
        tolerations: Node taints that the pods tolerate, as in a pod.
        service_account_name: ServiceAccount of the pods.
        security_context: PodSecurityContext of the pods.
        container_security_context: SecurityContext of the container.
        priority_class_name: PriorityClass of the pods.
        scheduler_name: Kubernetes scheduler that places the pods.
        runtime_class_name: RuntimeClass of the pods.
        pod_labels: Labels of the pods.
        pod_annotations: Annotations of the pods.
        container_resources: Requests and limits of each worker, or of a role that sets its own: `{"limits":
            {"memory": "8Gi"}}`.
    """

    image: Text | None = None
    command: Texts | None = None
    args: Texts | None = None
    env: Mapping[str, Any] | Sequence[Object] | Placeholder | None = None
    env_from: Objects | None = None
    secrets: Texts | None = None
    config_maps: Texts | None = None
    gpu_resource: str | None = None
    volumes: Objects | None = None
    volume_mounts: Objects | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | Placeholder | None = None
    image_pull_secrets: Objects | None = None
    init_containers: Objects | None = None
    node_selector: Mapping[str, Text] | Placeholder | None = None
    affinity: Object | None = None
    tolerations: Objects | None = None
    service_account_name: Text | None = None
    security_context: Object | None = None
    container_security_context: Object | None = None
    priority_class_name: Text | None = None
    scheduler_name: Text | None = None
    runtime_class_name: Text | None = None
    pod_labels: Mapping[str, Text] | Placeholder | None = None
    pod_annotations: Mapping[str, Text] | Placeholder | None = None
    container_resources: Object | None = None


@dataclass(frozen=True, kw_only=True)
class Role(PodDescription):
    """Description of one role's replicas, merged over that of all roles.

    Args:
        replicas: Number of replicas; unset, 1.
        restart_policy: Which failures of this role are retried.
        gpus: GPUs of each replica, in place of `gpus_per_worker`; 0 removes those of a manifest.
    """

    replicas: Number | None = None
    restart_policy: Literal["Never", "OnFailure", "Always", "ExitCode"] | Placeholder | None = None
    gpus: Number | None = None
