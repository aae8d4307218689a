"""Disruptions: ends of pods that do not count as failures, since the pod was evicted, preempted or lost its node.

The strings, here and in `PodView`, are the kubelet's (nodeshutdown_manager.go, preemption.go, eviction_manager.go,
kubelet_pods.go) and containerd's, which calls the end of what ran when its machine went down Unknown, with code 255.
"""

from typing import Final

from mxnet_operator.plan.observed import PodView

EVICTED: Final = "Evicted"
"""Reason of a pod that its kubelet evicted, even for its own limits: it counts, whatever its exit code."""
_DISRUPTIONS: Final = frozenset(
    {"PreemptionByScheduler", "DeletionByTaintManager", "EvictionByEvictionAPI", "DeletionByPodGC"}
)
"""Reasons of the condition DisruptionTarget that never count; with TerminationByKubelet the pod's reason decides."""


def is_disruption(pod: PodView | None) -> bool:
    """Return whether a lost pod was disrupted; one evicted under node pressure has failed instead.

    The end of a pod with a deletionTimestamp is a result of the deletion, not of the disruption.
    """
    if pod is None or pod.disruption in _DISRUPTIONS or _was_deleted_first(pod):
        return True
    return pod.pod_reason != EVICTED and (not pod.disruption or pod.stopped_by_node or pod.end_is_unknown)


def _was_deleted_first(pod: PodView) -> bool:
    return pod.deleting and (
        pod.deleted_at is None or pod.removal_requested_at is None or pod.deleted_at <= pod.removal_requested_at
    )
