"""What a job says while the scheduler finds no node for some of its pods: which wait, and why, in its own words."""

from datetime import datetime
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition
from mxnet_operator.plan.replicas import Replica

_NAMED: Final = 5


def with_placement(
    current: tuple[Condition, ...], replicas: tuple[Replica, ...], now: datetime
) -> tuple[Condition, ...]:
    """The conditions with PodsScheduled false while pods can't be placed, and true again once they are.

    The scheduler's words change with every node that comes or goes; what is said stays until other pods wait.
    """
    waiting = [replica for replica in replicas if replica.pod is not None and replica.pod.unschedulable]
    old = next((c for c in current if c.type == conditions.PODS_SCHEDULED), None)
    if not waiting:
        if old is None or old.status == "True" or any(replica.pod is None for replica in replicas):
            return current
        return conditions.set_condition(
            current, conditions.PODS_SCHEDULED, conditions.PODS_SCHEDULED, "Every pod has a node.", now
        )
    labels = ", ".join(replica.label for replica in waiting[:_NAMED])
    more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
    who = f"{labels}{more} can't be placed: "
    if old is not None and old.status == "False" and old.message.startswith(who):
        return current
    words = waiting[0].pod.unschedulable if waiting[0].pod is not None else ""
    return conditions.set_condition(
        current, conditions.PODS_SCHEDULED, conditions.REASON_UNSCHEDULABLE, f"{who}{words}", now, status="False"
    )
