"""Condition PodsScheduled: how many pods of a job have no node, what they lack, and why, in the scheduler's words.

The scheduler's words change with every node that comes or goes. What is said is therefore changed only where other pods
wait, other numbers are missing or words come where there were none, and not more often than every `times.SAY_AGAIN`.

Schedulers say on each pod that waits why; nobody adds it up. kube-scheduler's own gang scheduling tells the members
that would fit from pods that don't; scheduler-plugins says what a gang lacks, if its pod group has minResources.
"""

import contextlib
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.quantities import Resources, add, pod_requests, quantity, written
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Effects, Report
from mxnet_operator.plan.integration import Unplaced
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Replica, ReplicaState, labels
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.times import left_of

IGNORED_AFTER: Final = timedelta(minutes=1)
WOULD_FIT: Final = "waiting for minCount pods from a gang"
OF_A_GANG: Final = re.compile(r"\d+ of \d+ can be placed\b")
"""Pattern at the start of the local scheduler's messages about all pods of a job, the same on each of them."""
_INSUFFICIENT: Final = re.compile(r"Insufficient ([\w./-]+?)(?=[,.]*(?:\s|$))")
_GAP: Final = re.compile(r"([\w./-]+):\{\{(\d+) (-?\d+)\}")
"""A resource.Quantity as Go prints it: `nvidia.com/gpu:{{2 0} {<nil>}  DecimalSI}`, 2 times ten to the power of 0."""


def placement(state: JobState) -> Effects:
    """Report PodsScheduled: False while pods have no node, then True again.

    A pod of which no scheduler says anything for a minute names one that doesn't run, unless that scheduler has placed
    another pod of the job within that minute: it may have many to place.
    """
    replicas = state.replicas
    ignored = _ignored_for(replicas, state.now)
    effects = Effects(requeue_after=min(filter(None, ignored.values()), default=None))
    old = state.condition(conditions.PODS_SCHEDULED)
    of_integrations = (each.unplaced(state) for each in state.integrations)
    found = next(filter(None, of_integrations), None) or _of_pods(state.job, replicas, ignored)
    if found is not None:
        alike = old is not None and old.reason == found.reason
        return effects + state.waits(conditions.PODS_SCHEDULED, found.reason, found.beginning, found.words, alike=alike)
    if old is not None and old.status == "False" and all(each.pod and each.pod.is_placed for each in replicas):
        placed = Report(conditions.PODS_SCHEDULED, conditions.PODS_SCHEDULED, "Every pod has a node.")
        return effects + Effects(reports=(placed,))
    return effects


class Shortage(msgspec.Struct, frozen=True):
    """Shortage of a job that waits for room: what it has and lacks."""

    wanted: int
    """Replicas that are not done."""
    placed: int
    """The pods that have a node."""
    would_fit: int
    """The pods that wait for others of their gang only."""
    missing: Resources
    """By resource, in its own unit."""

    def __str__(self) -> str:
        """Return the words of a job's condition: `7 of 9 placed, missing 2 nvidia.com/gpu`."""
        can = "can be placed" if self.would_fit else "placed"
        missing = " and ".join(f"{written(amount)} {name}" for name, amount in sorted(self.missing.items()))
        return f"{self.placed + self.would_fit} of {self.wanted} {can}" + (f", missing {missing}" if missing else "")


def shortage(job: MXJob, replicas: Iterable[Replica]) -> Shortage:
    """Sum up the shortage of a job with defaults, by what the scheduler says of its pods now."""
    needed = [replica for replica in replicas if replica.state is not ReplicaState.DONE]
    placed = sum(replica.pod is not None and replica.pod.is_placed for replica in needed)
    waiting = [(replica.type, replica.pod.unschedulable) for replica in needed if _waits(replica) and replica.pod]
    would_fit = sum(WOULD_FIT in words for _, words in waiting)
    gaps = [gap for _, words in waiting if (gap := _gap(words))]
    missing = gaps[0] if gaps else add(_lacking(job, *each) for each in waiting if WOULD_FIT not in each[1])
    return Shortage(len(needed), placed, would_fit, missing)


def shortage_in_words(job: MXJob, replicas: tuple[Replica, ...]) -> str:
    """Return the shortage of a job with defaults for its user; of the local scheduler, in its own words."""
    words = (replica.pod.unschedulable for replica in replicas if _waits(replica) and replica.pod)
    return next(filter(OF_A_GANG.match, words), "") or str(shortage(job, replicas))


def _of_pods(job: MXJob, replicas: tuple[Replica, ...], ignored: Mapping[str, timedelta]) -> Unplaced | None:
    waiting = [
        (replica, why)
        for replica in replicas
        if replica.pod is not None and (why := _why(replica.pod, ignored)) is not None
    ]
    # A scheduler that has reported on one pod runs, and gets to the others.
    waiting = [each for each in waiting if each[1][0] == conditions.REASON_UNSCHEDULABLE] or waiting
    if not waiting:
        return None
    lacking = [each for each in waiting if WOULD_FIT not in each[1][1]] or waiting
    reason, words = lacking[0][1]
    if OF_A_GANG.match(words):
        return Unplaced(reason, words)
    who = f"{labels([replica for replica, _ in lacking])} can't be placed: "
    if reason == conditions.REASON_NO_SCHEDULER:
        return Unplaced(reason, who, words)
    return Unplaced(reason, f"{shortage(job, replicas)}: {who}", words)


def _why(pod: PodView, ignored: Mapping[str, timedelta]) -> tuple[str, str] | None:
    """Return reason and message for a pod that has no node; None for a pod that needs none."""
    if pod.unschedulable:
        return conditions.REASON_UNSCHEDULABLE, pod.unschedulable
    if ignored.get(pod.name, IGNORED_AFTER):
        return None
    return conditions.REASON_NO_SCHEDULER, f"no scheduler has reported on it. Does one named {pod.scheduler_name} run?"


def _ignored_for(replicas: tuple[Replica, ...], now: datetime) -> dict[str, timedelta]:
    """Return by pod, of those on which no scheduler has reported, how long its scheduler may still keep silent."""
    pods = [replica.pod for replica in replicas if replica.pod is not None]
    placed: dict[str, datetime] = {}
    for pod in pods:
        if pod.scheduled_at is not None:
            placed[pod.scheduler_name] = max(pod.scheduled_at, placed.get(pod.scheduler_name, pod.scheduled_at))
    return {
        pod.name: left_of(IGNORED_AFTER, max(pod.created_at, placed.get(pod.scheduler_name, pod.created_at)), now)
        for pod in pods
        if pod.created_at is not None and _is_ignored(pod)
    }


def _is_ignored(pod: PodView) -> bool:
    """Return whether no scheduler has reported on the pod."""
    was_seen = pod.node_name or pod.unschedulable or pod.scheduled_at is not None
    return pod.phase == "Pending" and not was_seen and not pod.deleting


def _waits(replica: Replica) -> bool:
    return replica.pod is not None and bool(replica.pod.unschedulable)


def _gap(words: str) -> Resources:
    """Return what a scheduler says is missing; nothing of a size that no node could have."""
    gap: Resources = {}
    for name, digits, scale in _GAP.findall(words):
        with contextlib.suppress(ValueError):
            gap[name.removeprefix("map[")] = quantity(f"{digits}e{scale}")
    return gap


def _lacking(job: MXJob, replica_type: str, words: str) -> Resources:
    """Return what a pod asks for of the resources that no node has enough of, in the scheduler's words."""
    short = set(_INSUFFICIENT.findall(words))
    try:
        requests = pod_requests(job.spec.mx_replica_specs[replica_type].template["spec"])
    except ValueError:
        return {}
    named = {names.GPU if name == names.OLD_GPU else name: amount for name, amount in requests.items()}
    return {name: amount for name, amount in named.items() if name in short}
