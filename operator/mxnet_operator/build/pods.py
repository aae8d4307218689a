"""The pod of one replica: the user's template, with what makes it part of its job."""

from typing import Any

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.build.environment import environment
from mxnet_operator.build.fail_fast import wants_hook, with_hook
from mxnet_operator.build.metadata import owner_reference, pod_labels


def build_pod(job: MXJob, replica_type: str, index: int, attempt: int, *, has_hook: bool = False) -> dict[str, Any]:
    """The manifest of a pod of a job with defaults.

    Whatever the template says reaches the pod untouched (GPU limits, volumes, fields that we don't know), but for its
    name, hostname and subdomain, our labels and variables, and restartPolicy, which is Never: the controller restarts.
    `has_hook` says that the fail-fast hook's ConfigMap is there and the template's command can be wrapped.
    """
    template = job.spec.mx_replica_specs[replica_type].template
    metadata = template.get("metadata") or {}
    name = names.replica_name(job.metadata.name, replica_type, index)
    variables = environment(job, replica_type, index)
    labels = pod_labels(job, replica_type, index, attempt)
    identity = {names.REPLICA_ANNOTATION: f"{replica_type}/{index}/{attempt}"}
    spec = template["spec"]
    if has_hook and wants_hook(job, replica_type):
        spec = with_hook(spec)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": {**(metadata.get("labels") or {}), **labels},
            "annotations": {**(metadata.get("annotations") or {}), **identity},
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


def _container(container: dict[str, Any], variables: dict[str, str]) -> dict[str, Any]:
    """The container with our variables in place of any that the user gave the same name."""
    kept = [variable for variable in container.get("env") or () if variable.get("name") not in variables]
    ours = [{"name": name, "value": value} for name, value in variables.items()]
    built = {**container, "env": [*kept, *ours]}
    if "resources" in container:
        built["resources"] = {kind: _with_gpu(amounts) for kind, amounts in (container["resources"] or {}).items()}
    if container["name"] == names.CONTAINER:
        # The kubelet then puts the log's last lines into the exit's message, which a failed job shows to its user.
        built.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    return built


def _with_gpu(amounts: Any) -> Any:
    """The limits or requests of a container, with the GPU resource's name of today."""
    if not isinstance(amounts, dict) or names.OLD_GPU not in amounts:
        return amounts
    return {names.GPU if name == names.OLD_GPU else name: amount for name, amount in amounts.items()}
