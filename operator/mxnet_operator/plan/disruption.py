"""Which ends of pods are disruptions: taken away, or lost with their node, so that they don't count as failures.

The strings, here and in `PodView`, are the kubelet's (nodeshutdown_manager.go, preemption.go, eviction_manager.go,
kubelet_pods.go) and containerd's, which calls the end of what ran when its machine went down Unknown, with code 255.
"""

from typing import Final

from mxnet_operator.plan.observed import PodView

EVICTED: Final = "Evicted"
"""The reason of a pod that the kubelet put out, be it for its own limits: it counts, whatever its exit code."""
_DISRUPTIONS: Final = frozenset(
    {"PreemptionByScheduler", "DeletionByTaintManager", "EvictionByEvictionAPI", "DeletionByPodGC"}
)
"""Reasons of the condition DisruptionTarget that never count; with TerminationByKubelet the pod's reason decides."""


def is_disruption(pod: PodView | None) -> bool:
    """Whether a pod that is lost was taken away; one put out under node pressure has failed instead.

    What happens to a pod that is being deleted already is the deletion's doing, whoever ends it.
    """
    if pod is None or pod.disruption in _DISRUPTIONS or _was_deleted_first(pod):
        return True
    return pod.pod_reason != EVICTED and (not pod.disruption or pod.stopped_by_node or pod.end_is_unknown)


def _was_deleted_first(pod: PodView) -> bool:
    return pod.deleting and (pod.deleted_at is None or pod.taken_at is None or pod.deleted_at <= pod.taken_at)
