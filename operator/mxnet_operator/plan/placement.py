"""Condition PodsScheduled: how many pods of a job have no node, and why, in the scheduler's own words.

The scheduler's words change with every node that comes or goes. What is said is therefore changed only where other pods
wait, other numbers are missing or words come where there were none, and not more often than every `waits.SAY_AGAIN`.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Replica, labels
from mxnet_operator.plan.shortage import OF_A_GANG, WOULD_FIT, shortage
from mxnet_operator.plan.waits import left_of, time_until_said_again

IGNORED_AFTER: Final = timedelta(minutes=1)


class Unplaced(msgspec.Struct, frozen=True):
    """Why a whole job gets no node, where its pods don't say so."""

    reason: str
    beginning: str
    """Part of the message that counts: with another, the condition changes."""
    words: str = ""


def with_placement(
    current: tuple[Condition, ...],
    job: MXJob,
    replicas: tuple[Replica, ...],
    now: datetime,
    unplaced: Unplaced | None = None,
) -> tuple[Condition, ...]:
    """Return the conditions with PodsScheduled: False while pods of a job with defaults have no node, then True again.

    A pod of which no scheduler says anything for a minute names one that doesn't run. `unplaced` is what an integration
    knows besides.
    """
    old, found = _said(current), _found(job, replicas, now, unplaced)
    if found is None:
        if old is None or old.status == "True" or any(replica.pod is None for replica in replicas):
            return current
        return conditions.set_condition(
            current, conditions.PODS_SCHEDULED, conditions.PODS_SCHEDULED, "Every pod has a node.", now
        )
    reason, beginning, words = found
    was_said = old is not None and (old.status, old.reason) == ("False", reason)
    if old is not None and was_said and (_says(old, beginning, words) or time_until_said_again(old, now)):
        return current
    message = f"{beginning}{words}"
    return conditions.set_condition(current, conditions.PODS_SCHEDULED, reason, message, now, status="False")


def time_until_unplaced(
    current: tuple[Condition, ...],
    job: MXJob,
    replicas: tuple[Replica, ...],
    now: datetime,
    unplaced: Unplaced | None = None,
) -> timedelta | None:
    """Return when to requeue the job to check on the scheduler or refresh the counts; None where nothing is due."""
    new = (replica.pod for replica in replicas if replica.pod is not None and _is_ignored(replica.pod))
    unseen = (left_of(IGNORED_AFTER, pod.created_at, now) for pod in new)
    old, found = _said(current), _found(job, replicas, now, unplaced)
    is_old = old is not None and found is not None and not _says(old, *found[1:])
    again = time_until_said_again(old, now) if old is not None and is_old else None
    return min(filter(None, (*unseen, again)), default=None)


def _said(current: tuple[Condition, ...]) -> Condition | None:
    return next((c for c in current if c.type == conditions.PODS_SCHEDULED), None)


def _says(said: Condition, beginning: str, words: str) -> bool:
    """Whether the message has the part that counts, and words if there are any now; which ones is no matter."""
    return said.message.startswith(beginning) and (said.message != beginning or not words)


def _found(
    job: MXJob, replicas: tuple[Replica, ...], now: datetime, unplaced: Unplaced | None
) -> tuple[str, str, str] | None:
    """Return what to report: reason, the part that counts, and the rest; None where no pod waits for a node."""
    if unplaced is not None:
        return unplaced.reason, unplaced.beginning, unplaced.words
    return _of_pods(job, replicas, now)


def _of_pods(job: MXJob, replicas: tuple[Replica, ...], now: datetime) -> tuple[str, str, str] | None:
    waiting = [
        (replica, why)
        for replica in replicas
        if replica.pod is not None and (why := _why(replica.pod, now)) is not None
    ]
    if not waiting:
        return None
    lacking = [each for each in waiting if WOULD_FIT not in each[1][1]] or waiting
    reason, words = lacking[0][1]
    if OF_A_GANG.match(words):
        return reason, words, ""
    who = f"{labels([replica for replica, _ in lacking])} can't be placed: "
    if reason == conditions.REASON_NO_SCHEDULER:
        return reason, who, words
    return reason, f"{shortage(job, replicas)}: {who}", words


def _why(pod: PodView, now: datetime) -> tuple[str, str] | None:
    """Return reason and message for a pod that has no node; None for a pod that needs none."""
    if pod.unschedulable:
        return conditions.REASON_UNSCHEDULABLE, pod.unschedulable
    if not _is_ignored(pod) or left_of(IGNORED_AFTER, pod.created_at, now):
        return None
    return conditions.REASON_NO_SCHEDULER, f"no scheduler has reported on it. Does one named {pod.scheduler_name} run?"


def _is_ignored(pod: PodView) -> bool:
    """Return whether no scheduler has reported on the pod."""
    was_seen = pod.node_name or pod.unschedulable or pod.scheduled_at is not None
    return pod.phase == "Pending" and pod.created_at is not None and not was_seen and not pod.deleting
