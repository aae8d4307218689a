"""Description of the pods of a job, or of one of its roles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

from mxnet_operator.api import names
from mxnet_operator.description.placeholder import Placeholder

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
        image: The image of the container `mxnet`.
        command: Its command, a list.
        args: Its arguments, a list.
        env: Its variables: a mapping of names to texts or to EnvVarSources (`{"secretKeyRef": {...}}`), or a list of
            EnvVars.
        env_from: A list of EnvFromSources.
        secrets: Names of Secrets whose keys all become variables.
        config_maps: Names of ConfigMaps whose keys all become variables.
        gpu_resource: The name of the GPUs' resource; `nvidia.com/gpu` if not given. A role's, or else the job's.
        volumes: Volumes of the pod.
        volume_mounts: Where the container finds them.
        image_pull_policy: Always, IfNotPresent or Never.
        image_pull_secrets: Names of Secrets, or LocalObjectReferences, for the images' registry.
        init_containers: Containers that run to their end before.
        node_selector: Labels that a node must have.
        affinity: An Affinity.
        tolerations: Tolerations of the taints of nodes.
        service_account_name: What the pod runs as towards the API server.
        security_context: Of the pod.
        container_security_context: Of the container.
        priority_class_name: The PriorityClass of the pod.
        scheduler_name: The Kubernetes scheduler that places it.
        runtime_class_name: The RuntimeClass of the pod.
        pod_labels: Labels of the pods.
        pod_annotations: Annotations of the pods.
        container_resources: `requests` and `limits` of the container: of each Worker, or of each replica of a role
            that gives its own.
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
        replicas: How many; 1 if not given.
        restart_policy: Never, OnFailure, Always or ExitCode.
        gpus: GPUs of each replica, in place of `gpus_per_worker`; 0 takes away those of a manifest.
    """

    replicas: Number | None = None
    restart_policy: Literal["Never", "OnFailure", "Always", "ExitCode"] | Placeholder | None = None
    gpus: Number | None = None


__all__ = ["ROLES", "PodDescription", "Role"]
