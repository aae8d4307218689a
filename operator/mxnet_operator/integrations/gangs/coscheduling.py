"""The plug-in Coscheduling of scheduler-plugins: PodGroup of scheduling.x-k8s.io, and a label on each pod."""

from functools import partial
from typing import Any, Final

from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.gangs.backend import GangBackend, pod_group, with_scheduling
from mxnet_operator.integrations.gangs.gang import UNIQUE_PODGROUPS, Gang, unique_group_name
from mxnet_operator.kube.resources import Resource

NAME: Final = "coscheduling"
POD_GROUP: Final = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups")
LABEL: Final = "scheduling.x-k8s.io/pod-group"
_SHORTEST_PERMIT: Final = 10
_BOUND_PER_SECOND: Final = 10
"""Pods that a busy kube-scheduler reserves in a second, at the least."""


def permit_seconds(gang: Gang) -> int:
    """Return how long the members that fit keep what they reserved while others don't.

    If no more than a tenth of a gang is missing the plug-in keeps the rest reserved for that long, a minute by default,
    and all that wait behind it are held up (docs/gangs.md). It ends no job: `scheduleTimeoutSeconds` of a job does.
    """
    enough = max(_SHORTEST_PERMIT, gang.members // _BOUND_PER_SECOND)
    return min(enough, gang.schedule_timeout or enough)


def _objects(job: MXJob, gang: Gang) -> tuple[dict[str, Any], ...]:
    """Build the group, with minResources only where its user wrote them.

    A gang that the plug-in turns away for them is not tried again when pods end elsewhere, but after five minutes:
    its EventsToRegister (0.33.5) has no such event. docs/decisions/gangs.md.
    """
    spec: dict[str, Any] = {"minMember": gang.minimum, "scheduleTimeoutSeconds": permit_seconds(gang)}
    policy = job.spec.run_policy.scheduling_policy
    written = gang.resources if policy is not None and policy.min_resources else {}
    return (pod_group(POD_GROUP, job, gang, spec, written, name=unique_group_name(job)),)


def _decorate(scheduler: str, job: MXJob, gang: Gang, pod: dict[str, Any]) -> dict[str, Any]:
    metadata = pod["metadata"]
    labels = {**metadata["labels"], LABEL: unique_group_name(job)}
    spec = with_scheduling(pod["spec"], gang, scheduler)
    return {**pod, "metadata": {**metadata, "labels": labels}, "spec": spec}


def backend(scheduler: str = "") -> GangBackend:
    """Make the back end; pods whose template names no scheduler get this one, or with none the cluster's default."""
    return GangBackend(
        resources=(POD_GROUP,),
        objects=_objects,
        decorate=partial(_decorate, scheduler),
        rule=UNIQUE_PODGROUPS,
    )
