"""Manifests of Kueue's Workloads, and their rows in the table of child kinds, one for each version."""

from functools import partial
from typing import Any, Final

import msgspec

from mxnet_operator.api.queue_labels import QUEUE_LABEL, execution_seconds
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders.metadata import job_labels, owner_reference
from mxnet_operator.builders.pods import with_gpus
from mxnet_operator.integrations.child_kinds import ChildKind, Patch
from mxnet_operator.integrations.kueue.workload import (
    ASKS_FOR_ANNOTATION,
    GROUP,
    ChangeQueueWorkload,
    CreateQueueWorkload,
    DeleteQueueWorkload,
    QueuePriority,
    SetQueueConditions,
    project_workload,
)
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan.started import with_all_replicas

_JOB_LABEL: Final = "kueue.x-k8s.io/job-uid"
"""Label of a Workload: the uid of its job."""
V1BETA2: Final = "v1beta2"
V1BETA1: Final = "v1beta1"
"""Of Kueue 0.9 to 0.14; 0.15 and later serve both."""
_NO_MAPS_OF_PODS: Final = frozenset({"hostAliases", "imagePullSecrets"})
_NO_MAPS_OF_CONTAINERS: Final = frozenset({"env", "ports"})
"""Lists that are maps in Kueue's CRD, each key once, and that Kubernetes takes of a pod with several alike."""
_CLASS_GROUPS: Final = {"WorkloadPriorityClass": GROUP, "PriorityClass": "scheduling.k8s.io"}


def build_queue_workload(
    job: MXJob, name: str, asks_for: str, priority: QueuePriority, version: str = V1BETA2
) -> dict[str, Any]:
    """Build the manifest of the Workload of a job with defaults; `asks_for` is a digest of what it asks for.

    It has no finalizer: Kubernetes then collects it with its job, and nobody has to give its quota back.
    """
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": {**job_labels(job), _JOB_LABEL: job.metadata.uid},
            "annotations": {ASKS_FOR_ANNOTATION: asks_for},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": queue_workload_spec(job, priority, version),
    }


def queue_workload_spec(job: MXJob, priority: QueuePriority, version: str = V1BETA2) -> dict[str, Any]:
    """Return what the Workload of a job with defaults asks for: the pods of each of its types."""
    labels = job.metadata.labels or {}
    seconds = execution_seconds(labels)
    return {
        "queueName": labels.get(QUEUE_LABEL, ""),
        **({} if seconds is None else {"maximumExecutionTimeSeconds": seconds}),
        "priority": priority.value,
        **_priority_class(priority, version),
        "podSets": [
            {"name": replica_type.lower(), "count": spec.replicas, "template": _template(spec.template)}
            for replica_type, spec in with_all_replicas(job).spec.specs_in_use.items()
        ],
    }


def _template(template: dict[str, Any]) -> dict[str, Any]:
    """Return the template without what no quota depends on and Kueue's CRD may reject, though a pod can have it."""
    metadata, spec = template.get("metadata") or {}, template["spec"]
    kept = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    containers = {
        field: [_container(each) for each in spec[field]]
        for field in ("initContainers", "containers")
        if spec.get(field)
    }
    return {"metadata": kept, "spec": {**_without(spec, _NO_MAPS_OF_PODS), **containers}}


def _container(container: dict[str, Any]) -> dict[str, Any]:
    asked = with_gpus(_without(container, _NO_MAPS_OF_CONTAINERS))
    claims = (asked.get("resources") or {}).get("claims")
    if not claims:
        return asked
    once = {claim["name"]: claim for claim in claims}
    return {**asked, "resources": {**asked["resources"], "claims": list(once.values())}}


def _without(fields: dict[str, Any], left_out: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in left_out}


def _priority_class(priority: QueuePriority, version: str) -> dict[str, Any]:
    if not priority.name:
        return {}
    group = _CLASS_GROUPS[priority.kind]
    if version == V1BETA1:
        plural = {"WorkloadPriorityClass": "workloadpriorityclass", "PriorityClass": "priorityclass"}[priority.kind]
        return {"priorityClassName": priority.name, "priorityClassSource": f"{group}/{plural}"}
    return {"priorityClassRef": {"group": group, "kind": priority.kind, "name": priority.name}}


def _manifest(version: str, job: MXJob, action: CreateQueueWorkload, _: bool) -> dict[str, Any]:
    return build_queue_workload(job, action.name, action.asks_for, action.priority, version)


def _patch(version: str, job: MXJob, action: ChangeQueueWorkload | SetQueueConditions) -> Patch:
    if isinstance(action, ChangeQueueWorkload):
        annotations = {ASKS_FOR_ANNOTATION: action.asks_for}
        spec = {**_UNSET, **queue_workload_spec(job, action.priority, version)}
        return Patch({"metadata": {"annotations": annotations}, "spec": spec})
    status: dict[str, Any] = {"conditions": msgspec.to_builtins(action.conditions)}
    return Patch({"status": {**status, **({"admission": None} if action.gives_quota_back else {})}}, "status")


_UNSET: Final = dict.fromkeys(
    ("maximumExecutionTimeSeconds", "priorityClassName", "priorityClassRef", "priorityClassSource")
)
"""Fields of a Workload's requests that a change removes where the job no longer has them."""


def _row(version: str) -> ChildKind:
    return ChildKind(
        resource=Resource(GROUP, version, "workloads"),
        project=project_workload,
        create=CreateQueueWorkload,
        build=partial(_manifest, version),
        end=(ChangeQueueWorkload, SetQueueConditions, DeleteQueueWorkload),
        patch=partial(_patch, version),
    )


QUEUE_WORKLOADS: Final = tuple(_row(version) for version in (V1BETA2, V1BETA1))
"""Rows by version, the newest first."""
