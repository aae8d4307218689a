"""What a job says while the scheduler finds no node for some of its pods: which wait, and why, in its own words."""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Replica, labels
from mxnet_operator.plan.waits import left_of

IGNORED_AFTER: Final = timedelta(minutes=1)


def with_placement(
    current: tuple[Condition, ...], replicas: tuple[Replica, ...], now: datetime
) -> tuple[Condition, ...]:
    """The conditions with PodsScheduled false while pods can't be placed, and true again once they are.

    The scheduler's words change with every node that comes or goes; what is said stays until other pods wait. A pod of
    which no scheduler says anything for a minute names one that doesn't run.
    """
    waiting = [
        (replica, why)
        for replica in replicas
        if replica.pod is not None and (why := _why(replica.pod, now)) is not None
    ]
    old = next((c for c in current if c.type == conditions.PODS_SCHEDULED), None)
    if not waiting:
        if old is None or old.status == "True" or any(replica.pod is None for replica in replicas):
            return current
        return conditions.set_condition(
            current, conditions.PODS_SCHEDULED, conditions.PODS_SCHEDULED, "Every pod has a node.", now
        )
    reason, words = waiting[0][1]
    who = f"{labels([replica for replica, _ in waiting])} can't be placed: "
    if old is not None and (old.status, old.reason) == ("False", reason) and old.message.startswith(who):
        return current
    return conditions.set_condition(current, conditions.PODS_SCHEDULED, reason, f"{who}{words}", now, status="False")


def time_until_unplaced(replicas: tuple[Replica, ...], now: datetime) -> timedelta | None:
    """When to look again whether a scheduler has seen every pod; None where all were seen, or it is said already."""
    new = (replica.pod for replica in replicas if replica.pod is not None and _is_ignored(replica.pod))
    return min(filter(None, (left_of(IGNORED_AFTER, pod.created_at, now) for pod in new)), default=None)


def _why(pod: PodView, now: datetime) -> tuple[str, str] | None:
    """Reason and words for a pod that has no node; None while all is well."""
    if pod.unschedulable:
        return conditions.REASON_UNSCHEDULABLE, pod.unschedulable
    if not _is_ignored(pod) or left_of(IGNORED_AFTER, pod.created_at, now):
        return None
    return conditions.REASON_NO_SCHEDULER, f"no scheduler has looked at it. Does one named {pod.scheduler_name} run?"


def _is_ignored(pod: PodView) -> bool:
    """Whether no scheduler has said anything of the pod."""
    was_seen = pod.node_name or pod.unschedulable or pod.scheduled_at is not None
    return pod.phase == "Pending" and pod.created_at is not None and not was_seen and not pod.deleting
