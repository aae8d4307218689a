"""Pod of one replica: the user's template, with what makes it part of its job."""

from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.pod_additions import PodAdditions
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders.environment import environment
from mxnet_operator.builders.fail_fast import can_take_hook, wants_hook, with_hook
from mxnet_operator.builders.metadata import owner_reference, pod_labels
from mxnet_operator.builders.placement import with_nodes

_OUTSIDE_THE_MESH: Final = {"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"}
"""Annotations that keep service meshes from injecting a proxy: ps-lite's connections hang in one
(kubeflow/mxnet-operator#50), and it never ends by itself."""


def build_pod(
    job: MXJob,
    replica_type: str,
    index: int,
    attempt: int,
    *,
    has_hook: bool = False,
    additions: tuple[PodAdditions, ...] = (),
) -> dict[str, Any]:
    """Return the manifest of a pod of a job with defaults.

    Whatever the template says reaches the pod untouched (GPU limits, volumes, fields that we don't know), but for its
    name, hostname and subdomain, our labels and variables, and restartPolicy, which is Never: the controller restarts.
    `has_hook` says that the fail-fast hook's ConfigMap is there; a template without a command goes without the hook.
    """
    template = job.spec.mx_replica_specs[replica_type].template
    metadata = template.get("metadata") or {}
    name = names.replica_name(job.metadata.name, replica_type, index)
    variables = environment(job, replica_type, index, attempt)
    labels = pod_labels(job, replica_type, index, attempt)
    identity = {names.REPLICA_ANNOTATION: f"{replica_type}/{index}/{attempt}"}
    spec = with_nodes(template["spec"], job, replica_type)
    if has_hook and wants_hook(job, replica_type) and can_take_hook(spec):
        spec = with_hook(spec, reports_result=TYPES[replica_type].reports_result and index == 0)
    if spec.get("initContainers"):
        spec = {**spec, "initContainers": [_with_last_lines(container) for container in spec["initContainers"]]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": {**(metadata.get("labels") or {}), **labels},
            "annotations": {**_OUTSIDE_THE_MESH, **(metadata.get("annotations") or {}), **identity},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            **spec,
            "containers": [_container(container, variables) for container in spec["containers"]],
            "restartPolicy": "Never",
            "hostname": name,
            "subdomain": names.subdomain(job.metadata.name),
        },
    }
    for each in additions:
        pod = _with(pod, each)
    return pod


def _with(pod: dict[str, Any], added: PodAdditions) -> dict[str, Any]:
    """Return the pod with an integration's additions; it keeps the labels by which it belongs to its job."""
    metadata, spec = pod["metadata"], pod["spec"]
    selector = {**(spec.get("nodeSelector") or {}), **dict(added.node_selector)}
    tolerations = list(spec.get("tolerations") or ())
    tolerations += [each for each in map(msgspec.to_builtins, added.tolerations) if each not in tolerations]
    gates = [*(spec.get("schedulingGates") or ()), *({"name": each} for each in added.scheduling_gates)]
    return {
        **pod,
        "metadata": {
            **metadata,
            "labels": {**dict(added.labels), **metadata["labels"]},
            "annotations": {**metadata["annotations"], **dict(added.annotations)},
        },
        "spec": {
            **spec,
            **({"nodeSelector": selector} if selector else {}),
            **({"tolerations": tolerations} if tolerations else {}),
            **({"schedulingGates": gates} if gates else {}),
        },
    }


def _container(container: dict[str, Any], variables: dict[str, str]) -> dict[str, Any]:
    """Return the container with our variables in place of the user's of the same names; a user's output folder stays.

    Ours come first: Kubernetes resolves `$(DMLC_WORKER_ID)` in a value only where that variable is listed before.
    """
    kept = [variable for variable in container.get("env") or () if variable.get("name") not in variables]
    ours = [{"name": name, "value": value} for name, value in variables.items()]
    if container["name"] != names.CONTAINER:
        return {**with_gpus(container), "env": [*ours, *kept]}
    if all(variable.get("name") != names.OUTPUT_VARIABLE for variable in kept):
        ours.append({"name": names.OUTPUT_VARIABLE, "value": "."})
    return _with_last_lines({**with_gpus(container), "env": [*ours, *kept]})


def _with_last_lines(container: dict[str, Any]) -> dict[str, Any]:
    """Return the container with its log's last lines as the message of a failed exit, which a job shows to its user."""
    return {"terminationMessagePolicy": "FallbackToLogsOnError", **container}


def with_gpus(container: dict[str, Any]) -> dict[str, Any]:
    """Return the container with today's name of the GPU resource in its limits and requests."""
    if "resources" not in container:
        return container
    resources = {kind: _with_gpu(amounts) for kind, amounts in (container["resources"] or {}).items()}
    return {**container, "resources": resources}


def _with_gpu(amounts: Any) -> Any:
    if not isinstance(amounts, dict) or names.OLD_GPU not in amounts:
        return amounts
    return {names.GPU if name == names.OLD_GPU else name: amount for name, amount in amounts.items()}
