"""Retries of a gang that its scheduler has put aside: the pod group is changed, which has it tried again.

The plug-in Coscheduling rejects, with the member that has no room, all that have some. It has these tried again when a
pod is created or a pod group changes, but not when room comes free: for that the member without room is tried, and
brings the others along. But kube-scheduler tries that one again as the first of the others lets go, it has room then,
waits for the rest, and is rejected by the plug-in with them. Now no member is left for which room that comes free
counts, and the gang waits beside it until kube-scheduler looks at all pods that have waited for five minutes.
`docs/decisions/gangs.md`.
"""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.gangs.gang import PodGroupView, gang_of
from mxnet_operator.plan.actions import Effects, TouchChild
from mxnet_operator.plan.children import Rules
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.times import left_of

SHORTEST: Final = timedelta(seconds=30)
LONGEST: Final = timedelta(minutes=2)
_PART_OF_THE_WAIT: Final = 8


def touched_groups(state: JobState) -> Effects:
    """Change the pod group of a job that waits for nodes, whenever that is due."""
    waiting = _waiting(state.job, state.present, state.rules)
    left = [(touch, group, _left(group, state.present, state.now)) for touch, group in waiting]
    return Effects(
        actions=tuple(touch(group.name, group.uid, state.now) for touch, group, wait in left if not wait),
        requeue_after=min((wait or SHORTEST for _, _, wait in left), default=None),
    )


def _waiting(job: MXJob, observed: Observed, rules: Rules) -> tuple[tuple[type[TouchChild], PodGroupView], ...]:
    """Return the pod group, with its change, of a gang of which enough pods exist and the scheduler has rejected each.

    Why it has is not asked: of the reasons that it writes into a pod one after the other, an older one may stay.
    """
    touches, pods = tuple(rule.touch for rule in rules if rule.touch is not None), observed.pods
    if not touches or not pods or any(pod.deleting or not pod.unschedulable for pod in pods):
        return ()
    gang = gang_of(job)
    if gang is None or len(pods) < gang.minimum:
        return ()
    groups = (child for child in observed.children if isinstance(child, PodGroupView) and not child.deleting)
    return tuple((touch, group) for group in groups for touch in touches)


def _left(group: PodGroupView, observed: Observed, now: datetime) -> timedelta:
    """Return how long the group is left as it is: an eighth of the time that the gang had waited as it was touched."""
    created = [pod.created_at for pod in observed.pods if pod.created_at is not None]
    if not created:
        return timedelta(0)
    since = max(created)
    last = max(group.touched_at or since, since)
    return left_of(min(max((last - since) / _PART_OF_THE_WAIT, SHORTEST), LONGEST), last, now)
