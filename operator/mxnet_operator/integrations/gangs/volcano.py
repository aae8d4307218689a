"""Volcano: PodGroup of scheduling.volcano.sh, and annotations on pods that its own scheduler places."""

from functools import partial
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.gangs.backend import GangBackend, condition_message, pod_group, with_scheduling
from mxnet_operator.integrations.gangs.gang import READY_PODGROUPS, Gang
from mxnet_operator.kube.resources import Resource

NAME: Final = "volcano"
SCHEDULER: Final = "volcano"
POD_GROUP: Final = Resource("scheduling.volcano.sh", "v1beta1", "podgroups")
DEFAULT_QUEUE: Final = "default"
_GROUP: Final = "scheduling.k8s.io/group-name"
_TASK: Final = "volcano.sh/task-spec"


def _objects(job: MXJob, gang: Gang) -> tuple[dict[str, Any], ...]:
    spec: dict[str, Any] = {"minMember": gang.minimum, "queue": gang.queue or DEFAULT_QUEUE}
    if gang.priority_class:
        spec["priorityClassName"] = gang.priority_class
    return (pod_group(POD_GROUP, job, gang, spec, gang.resources),)


def _decorate(scheduler: str, job: MXJob, gang: Gang, pod: dict[str, Any]) -> dict[str, Any]:
    metadata = pod["metadata"]
    task = metadata["labels"][names.LABEL_REPLICA_TYPE]
    annotations = {**metadata["annotations"], _GROUP: job.metadata.name, _TASK: task}
    spec = with_scheduling(pod["spec"], gang, scheduler)
    return {**pod, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def _ready_for_pods(group: dict[str, Any]) -> bool:
    """Once its queue has room for it: before, pods would only fill the API server (training-operator waits, too)."""
    return (group.get("status") or {}).get("phase") not in (None, "", "Pending")


def _describe(group: dict[str, Any]) -> str:
    return condition_message(group, ("Unschedulable",), "True")


def backend(scheduler: str = "") -> GangBackend:
    """Make the back end; pods whose template names no scheduler get this one, `volcano` by default."""
    return GangBackend(
        resources=(POD_GROUP,),
        objects=_objects,
        decorate=partial(_decorate, scheduler or SCHEDULER),
        ready_for_pods=_ready_for_pods,
        describe=_describe,
        rule=READY_PODGROUPS,
    )
