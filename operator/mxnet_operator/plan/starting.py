"""Condition PodsStarted: which pods of a job can't start, and why: in the kubelet's words, or since it has none."""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Replica, labels
from mxnet_operator.plan.waits import left_of

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
_IS_IT_THERE: Final = ". Does it exist, and is it ready?"
SILENT_AFTER: Final = timedelta(minutes=1)
"""Time after which a placed pod is reported of which its kubelet says nothing, not even that it prepares it."""


def with_starting(
    current: tuple[Condition, ...], replicas: tuple[Replica, ...], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with PodsStarted: False while containers can't start, True again once every replica runs.

    A kubelet that tries again alternates between two reasons; the message stays until other replicas wait. That a node
    is silent is taken back once it reports.
    """
    old = next((c for c in current if c.type == conditions.PODS_STARTED), None)
    waiting = [(replica, replica.pod) for replica in replicas if replica.pod is not None and not replica.started]
    stuck = [each for each in waiting if each[1].waiting_reason in CANNOT_START]
    silent = [each for each in waiting if _is_unheard_of(each[1]) and not left_of(SILENT_AFTER, each[1].placed_at, now)]
    if not stuck and not silent:
        return _without_trouble(current, old, replicas, now)
    who = f"{labels([replica for replica, _ in stuck or silent])} can't start: "
    first = (stuck or silent)[0][1]
    reason, hint = (first.waiting_reason, "") if stuck else (conditions.REASON_NODE_SILENT, _IS_IT_THERE)
    if stuck and old is not None and old.status == "False" and old.message.startswith(who):
        return current
    message = f"{who}{reason_to_wait(first)}{hint}"
    return conditions.set_condition(current, conditions.PODS_STARTED, reason, message, now, status="False")


def time_until_silent(replicas: tuple[Replica, ...], now: datetime) -> timedelta | None:
    """Return when to requeue the job to report a pod whose node says nothing; None where nothing is due."""
    pods = (replica.pod for replica in replicas if replica.pod is not None and _is_unheard_of(replica.pod))
    return min(filter(None, (left_of(SILENT_AFTER, pod.placed_at, now) for pod in pods)), default=None)


def reason_to_wait(pod: PodView) -> str:
    """Return why a container of the pod waits, and which; of a placed pod without a status, that its node is silent."""
    if _is_unheard_of(pod):
        return f"node {pod.node_name} has not reported on it"
    words = ": ".join(part for part in (pod.waiting_reason, pod.waiting_message) if part)
    return f"container {pod.waiting_container}: {words}" if pod.waiting_container else words


def _without_trouble(
    current: tuple[Condition, ...], old: Condition | None, replicas: tuple[Replica, ...], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions once nothing keeps pods from starting: PodsStarted stays until all have, or is dropped."""
    if old is None or old.status == "True":
        return current
    if all(replica.started for replica in replicas):
        return conditions.set_condition(
            current, conditions.PODS_STARTED, conditions.PODS_STARTED, "Every replica has started.", now
        )
    return tuple(c for c in current if c is not old or c.reason != conditions.REASON_NODE_SILENT)


def _is_unheard_of(pod: PodView) -> bool:
    """Return whether the kubelet of the pod's node, if there is one, has not reported on it."""
    was_heard_of = pod.waiting_reason or pod.phase != "Pending" or pod.exit_code is not None
    return bool(pod.node_name) and pod.placed_at is not None and not was_heard_of and not pod.deleting
