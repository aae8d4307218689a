"""Kubernetes' own gang scheduling: Workload and PodGroup of scheduling.k8s.io, which kube-scheduler acts on.

Alpha in 1.36 (v1alpha2), beta in 1.37 (v1beta1, v1alpha3), off by default in both; KEP-4671. A PodGroup's policy is
immutable in 1.36, and pods that wait keep a group that is deleted by its finalizer.
"""

import logging
from functools import partial
from typing import Any, Final

from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.child_kinds import StoredChild
from mxnet_operator.integrations.gangs.backend import GangBackend, condition_message, group_metadata, with_scheduling
from mxnet_operator.integrations.gangs.gang import Gang
from mxnet_operator.kube.resources import Resource

NAME: Final = "native"
GROUP: Final = "scheduling.k8s.io"
_TEMPLATE: Final = "all"
_NEWER: Final = ("v1beta1", "v1alpha3")
"""The versions of 1.37, newest first: other fields for the same."""
_V1ALPHA2: Final = "v1alpha2"
_WAITS: Final = ("PodGroupScheduled", "PodGroupInitiallyScheduled")

log = logging.getLogger(__name__)


def _objects(version: str, job: MXJob, gang: Gang) -> tuple[dict[str, Any], ...]:
    api_version, name = f"{GROUP}/{version}", job.metadata.name
    policy = {"gang": {"minCount": gang.minimum}}
    group, _, _ = job.api_version.rpartition("/")
    workload = {
        "apiVersion": api_version,
        "kind": "Workload",
        "metadata": group_metadata(job, gang),
        "spec": {
            "controllerRef": {"apiGroup": group, "kind": job.kind, "name": name},
            "podGroupTemplates": [{"name": _TEMPLATE, "schedulingPolicy": policy}],
        },
    }
    pod_group = {
        "apiVersion": api_version,
        "kind": "PodGroup",
        "metadata": group_metadata(job, gang),
        "spec": {
            **_template_of(version, name),
            "schedulingPolicy": policy,
            # Else a gang of a higher priority takes some pods of this one, and the others hold on to what they have.
            "disruptionMode": _whole(version),
            **({"priorityClassName": gang.priority_class} if gang.priority_class else {}),
        },
    }
    return workload, pod_group


def _template_of(version: str, name: str) -> dict[str, Any]:
    if version == _V1ALPHA2:
        return {"podGroupTemplateRef": {"workload": {"workloadName": name, "podGroupTemplateName": _TEMPLATE}}}
    return {"workloadRef": {"workloadName": name, "templateName": _TEMPLATE}}


def _whole(version: str) -> Any:
    return "PodGroup" if version == _V1ALPHA2 else {"all": {}}


def _decorate(job: MXJob, gang: Gang, pod: dict[str, Any]) -> dict[str, Any]:
    spec = {**with_scheduling(pod["spec"], gang), "schedulingGroup": {"podGroupName": job.metadata.name}}
    return {**pod, "spec": spec}


def _describe(group: dict[str, Any]) -> str:
    return condition_message(group, _WAITS, "False")


def _dropped(version: str, job: MXJob, gang: Gang, stored: StoredChild) -> str:
    """Without its feature gate WorkloadAwarePreemption the server drops priority and disruption mode."""
    if stored.kind != "PodGroup":
        return ""
    spec = stored.spec
    if spec.get("disruptionMode") != _whole(version):
        log.info(
            "PodGroups keep no disruptionMode here: the scheduler preempts single pods, and the rest of a gang is then"
            " stopped by this controller. kube-apiserver and kube-scheduler have it with the feature gate"
            " WorkloadAwarePreemption"
        )
    if gang.priority_class and spec.get("priorityClassName") != gang.priority_class:
        return (
            f"PodGroup {job.metadata.name}: the API server dropped priorityClassName {gang.priority_class}, since its"
            " feature gate WorkloadAwarePreemption is off: only the pods have that priority"
        )
    return ""


def _dropped_of_pod(pod: StoredChild) -> str:
    if "schedulingGroup" in pod.spec:
        return ""
    return (
        f"Pod {pod.metadata.name}: the API server dropped schedulingGroup, since its feature gate GenericWorkload"
        " is off: the pods of the job are placed one by one"
    )


def _backend(version: str) -> GangBackend:
    return GangBackend(
        resources=(Resource(GROUP, version, "workloads"), Resource(GROUP, version, "podgroups")),
        objects=partial(_objects, version),
        decorate=_decorate,
        describe=_describe,
        dropped=partial(_dropped, version),
        dropped_of_pod=_dropped_of_pod,
    )


BACKENDS: Final = tuple(_backend(version) for version in (*_NEWER, _V1ALPHA2))
