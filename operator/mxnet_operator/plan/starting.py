"""Condition PodsStarted: which pods of a job can't start, and why: in the kubelet's words, or since it has none."""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Replica, labels
from mxnet_operator.plan.waits import left_of, time_until_said_again

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

    A kubelet that tries again alternates between two reasons; the message stays until other replicas wait, and then for
    `waits.SAY_AGAIN`, since the pods of a large job come to it one after the other. That a node is silent is taken back
    once it reports.
    """
    old, found = _said(current), _found(replicas, now)
    if found is None:
        return _without_trouble(current, old, replicas, now)
    reason, beginning, words = found
    was_said = old is not None and _is_said(old, reason)
    if old is not None and was_said and (old.message.startswith(beginning) or time_until_said_again(old, now)):
        return current
    message = f"{beginning}{words}"
    return conditions.set_condition(current, conditions.PODS_STARTED, reason, message, now, status="False")


def time_until_told(current: tuple[Condition, ...], replicas: tuple[Replica, ...], now: datetime) -> timedelta | None:
    """Return when to requeue the job to report a silent node, or other replicas; None where nothing is due."""
    pods = (replica.pod for replica in replicas if replica.pod is not None and _is_unheard_of(replica.pod))
    unheard_of = (left_of(SILENT_AFTER, pod.placed_at, now) for pod in pods)
    old, found = _said(current), _found(replicas, now)
    is_old = old is not None and found is not None and not old.message.startswith(found[1])
    again = time_until_said_again(old, now) if old is not None and is_old else None
    return min(filter(None, (*unheard_of, again)), default=None)


def reason_to_wait(pod: PodView) -> str:
    """Return why a container of the pod waits, and which; of a placed pod without a status, that its node is silent."""
    if _is_unheard_of(pod):
        return f"node {pod.node_name} has not reported on it"
    words = ": ".join(part for part in (pod.waiting_reason, pod.waiting_message) if part)
    return f"container {pod.waiting_container}: {words}" if pod.waiting_container else words


def _said(current: tuple[Condition, ...]) -> Condition | None:
    return next((c for c in current if c.type == conditions.PODS_STARTED), None)


def _is_said(old: Condition, reason: str) -> bool:
    """Return whether the condition is False already, for a reason of the same kind: silence, or a kubelet's words."""
    silent = conditions.REASON_NODE_SILENT
    return old.status == "False" and (old.reason == silent) == (reason == silent)


def _found(replicas: tuple[Replica, ...], now: datetime) -> tuple[str, str, str] | None:
    """Return what to report: reason, the part that counts, and the rest; None where nothing is wrong."""
    waiting = [(replica, replica.pod) for replica in replicas if replica.pod is not None and not replica.started]
    stuck = [each for each in waiting if each[1].waiting_reason in CANNOT_START]
    silent = [each for each in waiting if _is_unheard_of(each[1]) and not left_of(SILENT_AFTER, each[1].placed_at, now)]
    if not stuck and not silent:
        return None
    who = f"{labels([replica for replica, _ in stuck or silent])} can't start: "
    first = (stuck or silent)[0][1]
    if stuck:
        return first.waiting_reason, who, reason_to_wait(first)
    return conditions.REASON_NODE_SILENT, f"{who}{reason_to_wait(first)}{_IS_IT_THERE}", ""


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
    was_heard_of = pod.reported or pod.waiting_reason or pod.phase != "Pending" or pod.exit_code is not None
    return bool(pod.node_name) and pod.placed_at is not None and not was_heard_of and not pod.deleting
