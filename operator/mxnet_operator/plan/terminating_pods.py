"""Pods that are deleted: with which grace period, and what is done about those that stay in Terminating.

A pod stays for as long as its node does not confirm its end. Where the node has merely stopped talking the pod may
still run, and write the checkpoints that its successor would write: so it is waited for, without end unless
progressDeadlineSeconds is set. It is deleted by force only where its node can't run it any more (`NodeView`).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.plan.actions import DeletePod, Effects, Event, Reads
from mxnet_operator.plan.observed import NodeView, PodView
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.times import Policy
from mxnet_operator.readers.durations import after
from mxnet_operator.readers.enumeration import first_names

_NAMED: Final = 5
SERVING_GRACE: Final = 1
"""Grace period in seconds. Schedulers and servers save nothing, and as PID 1 ignore SIGTERM (`docs/facts/mxnet.md`)."""


def delete_pod(pod: PodView) -> DeletePod:
    """Return the action that deletes this pod, and no other of its name."""
    return DeletePod(pod.name, pod.uid, SERVING_GRACE if TYPES[pod.type].serves else None)


def terminating_pods(state: JobState) -> Reads | Effects:
    """Delete the pods of earlier attempts, which make room for the present one's."""
    deletions = tuple(delete_pod(pod) for pod in state.terminating if not pod.deleting)
    left = await_termination(state, state.terminating)
    return left if isinstance(left, Reads) else Effects(actions=deletions) + left


def await_termination(state: JobState, terminating: tuple[PodView, ...]) -> Reads | Effects:
    """Return what pods that are being deleted still need; first the states of the nodes that they are stuck on."""
    now, policy = state.now, state.policy
    stuck = _stuck(terminating, now, policy)
    states = {node.name: node.state for node in state.observed.nodes}
    in_doubt = {pod.node_name for pod in stuck if pod.node_name and not pod.forced}
    if in_doubt - states.keys():
        return Reads(nodes=tuple(sorted(in_doubt)))
    lost = tuple(pod for pod in stuck if states.get(pod.node_name) in ("Gone", "OutOfService") and not pod.forced)
    waited_for = tuple(pod for pod in stuck if pod not in lost)
    reported = Effects()
    if waited_for:
        words = "; ".join(dict.fromkeys(_why(pod, states) for pod in waited_for))
        message = f"{_named(waited_for)} did not terminate within the grace period: {words}."
        reason = conditions.REASON_GRACE_EXCEEDED
        reported = state.warn(conditions.PODS_TERMINATING, reason, message, again="if changed")
    elif not stuck:
        words = "No pod is terminating past its grace period."
        reported = state.no_longer(conditions.PODS_TERMINATING, conditions.REASON_TERMINATED, words)
    return reported + Effects(
        actions=tuple(DeletePod(pod.name, pod.uid, grace=0) for pod in lost),
        events=_events(lost, states),
        requeue_after=_requeue_after(terminating, stuck, states, now, policy),
    )


def _stuck(pods: Iterable[PodView], now: datetime, policy: Policy) -> tuple[PodView, ...]:
    overdue = (pod for pod in pods if pod.delete_by and _overdue_at(pod.delete_by, policy) <= now)
    return tuple(sorted(overdue, key=lambda pod: pod.name))


def _overdue_at(delete_by: datetime, policy: Policy) -> datetime:
    return after(delete_by, policy.termination_slack.total_seconds())


def _events(lost: tuple[PodView, ...], states: Mapping[str, str]) -> tuple[Event, ...]:
    if not lost:
        return ()
    why = "is gone" if states[lost[0].node_name] == "Gone" else f"has the taint {NodeView.OUT_OF_SERVICE}"
    message = f"Deleted {_named(lost)} by force: its node {why}, so it can't run any more."
    return (Event("Warning", "ForceDeletedPod", message),)


def _named(pods: tuple[PodView, ...]) -> str:
    return first_names([f"pod {where(pod)}" for pod in pods], _NAMED)


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
