"""Condition PodsStarted: which containers of a job can't start, and why, in the kubelet's words."""

from datetime import datetime
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Replica, labels

CANNOT_START: Final = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "PostStartHookError",
        "PreCreateHookError",
        "PreStartHookError",
        "RegistryUnavailable",
        "RunContainerError",
    }
)
"""Kubelet's reasons for trying again later (container/sync_result.go, images/types.go, kuberuntime/)."""


def with_starting(
    current: tuple[Condition, ...], replicas: tuple[Replica, ...], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with PodsStarted: False while containers can't start, True again once every replica runs.

    A kubelet that tries again alternates between two reasons; the message stays until other replicas wait.
    """
    old = next((c for c in current if c.type == conditions.PODS_STARTED), None)
    stuck = [
        (replica, replica.pod)
        for replica in replicas
        if replica.pod is not None and not replica.started and replica.pod.waiting_reason in CANNOT_START
    ]
    if not stuck:
        if old is None or old.status == "True" or not all(replica.started for replica in replicas):
            return current
        return conditions.set_condition(
            current, conditions.PODS_STARTED, conditions.PODS_STARTED, "Every replica has started.", now
        )
    who = f"{labels([replica for replica, _ in stuck])} can't start: "
    if old is not None and old.status == "False" and old.message.startswith(who):
        return current
    first = stuck[0][1]
    return conditions.set_condition(
        current, conditions.PODS_STARTED, first.waiting_reason, f"{who}{reason_to_wait(first)}", now, status="False"
    )


def reason_to_wait(pod: PodView) -> str:
    """Return why a container of the pod waits, and which."""
    words = ": ".join(part for part in (pod.waiting_reason, pod.waiting_message) if part)
    return f"container {pod.waiting_container}: {words}" if pod.waiting_container else words
