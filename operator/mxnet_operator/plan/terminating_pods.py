"""Pods stuck in Terminating: the condition that reports them, and when they are deleted by force.

A pod stays for as long as its node does not confirm its end. Where the node has merely stopped talking the pod may
still run, and write the checkpoints that its successor would write: so it is waited for, without end unless
progressDeadlineSeconds is set. It is deleted by force only where its node can't run it any more (`NodeView`).
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan.actions import DeletePod, Event
from mxnet_operator.plan.observed import NodeView, Observed, PodView
from mxnet_operator.plan.policy import DEFAULT, Policy
from mxnet_operator.readers.durations import after

_NAMED: Final = 5


class Termination(msgspec.Struct, frozen=True):
    """Actions and conditions for pods that still exist after their deletion."""

    conditions: tuple[Condition, ...]
    deletions: tuple[DeletePod, ...] = ()
    events: tuple[Event, ...] = ()
    requeue_after: timedelta | None = None


def nodes_in_doubt(job: MXJob, observed: Observed, now: datetime, policy: Policy = DEFAULT) -> tuple[str, ...]:
    """Return the names of the nodes that `plan` needs to know: those of pods that don't terminate."""
    if job.metadata.deletion_timestamp is not None or conditions.is_terminal(job.status):
        return ()
    pods = observed.owned_by(job.metadata.uid).pods
    return tuple(sorted({pod.node_name for pod in _stuck(pods, now, policy) if pod.node_name and not pod.forced}))


def await_termination(
    current: tuple[Condition, ...],
    terminating: tuple[PodView, ...],
    nodes: tuple[NodeView, ...],
    now: datetime,
    policy: Policy = DEFAULT,
) -> Termination:
    """Return what `terminating`, the pods of an earlier attempt, still need; `current` are the job's conditions."""
    stuck = _stuck(terminating, now, policy)
    states = {node.name: node.state for node in nodes}
    lost = tuple(pod for pod in stuck if states.get(pod.node_name) in ("Gone", "OutOfService") and not pod.forced)
    waited_for = tuple(pod for pod in stuck if pod not in lost)
    reported = current
    if waited_for:
        words = "; ".join(dict.fromkeys(_why(pod, states) for pod in waited_for))
        reported = conditions.set_condition(
            current,
            conditions.PODS_TERMINATING,
            conditions.REASON_GRACE_EXCEEDED,
            f"{_named(waited_for)} did not terminate within the grace period: {words}.",
            now,
        )
    elif not stuck:
        reported = conditions.set_false(
            current,
            conditions.PODS_TERMINATING,
            conditions.REASON_TERMINATED,
            "No pod is terminating past its grace period.",
            now,
        )
    return Termination(
        reported,
        _forced(lost),
        tuple(_events(current, reported, lost, states)),
        _requeue_after(terminating, stuck, states, now, policy),
    )


def _stuck(pods: Iterable[PodView], now: datetime, policy: Policy) -> tuple[PodView, ...]:
    overdue = (pod for pod in pods if pod.delete_by and _overdue_at(pod.delete_by, policy) <= now)
    return tuple(sorted(overdue, key=_by_name))


def _overdue_at(delete_by: datetime, policy: Policy) -> datetime:
    return after(delete_by, policy.termination_slack.total_seconds())


def _by_name(pod: PodView) -> str:
    return pod.name


def _forced(lost: tuple[PodView, ...]) -> tuple[DeletePod, ...]:
    return tuple(DeletePod(pod.name, pod.uid, grace=0) for pod in lost)


def _events(
    before: tuple[Condition, ...], after: tuple[Condition, ...], lost: tuple[PodView, ...], states: Mapping[str, str]
) -> Iterator[Event]:
    if after != before and conditions.is_true(after, conditions.PODS_TERMINATING):
        yield Event("Warning", conditions.PODS_TERMINATING, after[-1].message)
    if lost:
        why = "is gone" if states[lost[0].node_name] == "Gone" else f"has the taint {NodeView.OUT_OF_SERVICE}"
        message = f"Deleted {_named(lost)} by force: its node {why}, so it can't run any more."
        yield Event("Warning", "ForceDeletedPod", message)


def _named(pods: tuple[PodView, ...]) -> str:
    names = ", ".join(f"pod {where(pod)}" for pod in pods[:_NAMED])
    return names + (f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else "")


def where(pod: PodView) -> str:
    """Return the pod's name, and its node if it has one."""
    return f"{pod.name} on node {pod.node_name}" if pod.node_name else pod.name


def _why(pod: PodView, states: Mapping[str, str]) -> str:
    if pod.finalizers:
        return f"held by the finalizer {', '.join(pod.finalizers)}"
    if states.get(pod.node_name) == "Forbidden":
        return (
            "its node has not confirmed that it ended, and this controller has no right to read nodes; once you know"
            " that it no longer runs, delete it with kubectl delete pod --grace-period=0 --force"
        )
    return (
        "its node has not confirmed that it ended, so it may still run and write; it is deleted by force once its node"
        f" is deleted, or is not ready and has the taint {NodeView.OUT_OF_SERVICE}"
    )


def _requeue_after(
    terminating: tuple[PodView, ...],
    stuck: tuple[PodView, ...],
    states: Mapping[str, str],
    now: datetime,
    policy: Policy,
) -> timedelta | None:
    asked = [pod for pod in stuck if not pod.forced]
    if any(states.get(pod.node_name) != "Forbidden" for pod in asked):
        return policy.ask_for_nodes
    waits = [_overdue_at(pod.delete_by, policy) - now for pod in terminating if pod.delete_by and pod not in stuck]
    return min([*waits, *([policy.ask_for_nodes_where_forbidden] if asked else [])], default=None)
