"""The ends of a job's replicas, read from its pods: pure functions on what the API server returned."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.readers.pods import PROCESS, has_failed, in_order, label_of, outcome_of, summary_of, terminated_of

Pod = Mapping[str, Any]

RESULT_OF: Final = f"{names.WORKER.lower()}-0"
"""The replica whose termination message is a training job's result."""


def summary(pods: Iterable[Pod]) -> list[dict[str, Any]]:
    """One small dict per replica, in the order scheduler, servers, workers; times in RFC 3339 or None."""
    return [summary_of(pod) for pod in in_order(pods)]


def failures(pods: Iterable[Pod]) -> list[dict[str, Any]]:
    return [
        {
            "pod": pod["metadata"]["name"],
            "exit_code": terminated.get("exitCode"),
            "reason": terminated.get("reason") or (pod.get("status") or {}).get("reason") or "",
        }
        for pod in in_order(pods)
        if has_failed(pod)
        for _, terminated in [terminated_of(pod)]
    ]


def are_local(pods: Iterable[Pod]) -> bool:
    """Return whether the pods ran on a local cluster, whose containers are processes."""
    return any(str(_container(pod).get("containerID")).startswith(PROCESS) for pod in pods)


def _container(pod: Pod) -> Mapping[str, Any]:
    """Return the status of the pod's `mxnet` container: `{}` before the kubelet has seen it."""
    return names.main_container((pod.get("status") or {}).get("containerStatuses"))


def _state(pod: Pod) -> Mapping[str, Any]:
    return _container(pod).get("state") or {}


def reason_to_skip(failed: Iterable[Mapping[str, Any]], codes: Collection[int]) -> str:
    """Say which of the replicas that failed ended with one of these exit codes; empty where none did."""
    for replica in failed:
        if replica["exit_code"] in codes:
            return f"{replica['pod']} ended with {replica['exit_code']}, which is in skip_on_exit_code"
    return ""


def result_text(pods: Iterable[Pod], result_of: str = RESULT_OF) -> str:
    for pod in pods:
        if label_of(pod) == result_of and outcome_of(pod) != "stopped":  # else its message is the end of its log
            text = (_state(pod).get("terminated") or {}).get("message")
            if text:
                return str(text)
    return ""
