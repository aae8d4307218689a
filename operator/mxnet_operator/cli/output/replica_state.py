"""State of one replica as its pod shows it: state, time, node, exit code and reason."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mxnet_operator.api import names
from mxnet_operator.cli.output.times import moment
from mxnet_operator.readers.pods import (
    Outcome,
    cause_order,
    ended_without_container,
    label_of,
    outcome_of,
    status_of,
    terminated_of,
    why_not_started,
)


@dataclass(frozen=True)
class ReplicaState:
    """State of a replica for display; texts are empty where the pod doesn't have them."""

    replica: str
    """Such as `worker-0`."""
    pod: str
    phase: str
    state: str
    """The phase in more detail: `ContainerCreating`, `Completed`, `Terminating`."""
    node: str
    exit_code: int | None
    since: str
    """When it entered this state, in the API's timestamp format."""
    finished: datetime | None
    why: str
    """Why it waits, or its termination message."""
    reason: str = ""
    """The kubelet's reason for the end of its container, such as `OOMKilled`."""
    outcome: Outcome = "unfinished"

    @property
    def has_failed(self) -> bool:
        """Whether it failed; one that was stopped has not."""
        return self.outcome == "failed"

    @property
    def end(self) -> str:
        """Its end in words for a line: `exit code 7`, and `failed` where no container ended; empty before."""
        if self.exit_code is None:
            return "failed" if self.has_failed else ""
        return f"exit code {self.exit_code}"

    @property
    def summary(self) -> str:
        """The most informative line of `why`: the last one after a failure, else the first."""
        lines = [line for line in self.why.splitlines() if line.strip()]
        return lines[-1 if self.has_failed else 0].strip() if lines else ""


def replica_state(pod: dict[str, Any]) -> ReplicaState:
    metadata, status = pod["metadata"], pod.get("status") or {}
    container = names.main_container(status.get("containerStatuses"))
    state = container.get("state") or {}
    running, waiting = (state.get(key) or {} for key in ("running", "waiting"))
    init_container, ended = terminated_of(pod)  # of one that failed the kubelet still says PodInitializing of mxnet
    phase, outcome = status.get("phase") or "Pending", outcome_of(pod)
    in_words = (
        (metadata.get("deletionTimestamp") and "Terminating")
        or (outcome == "stopped" and "Stopped")
        or (f"Init:{ended.get('reason') or 'Error'}" if init_container else ended.get("reason"))
        or (running and "Running")
        or waiting.get("reason")
        or status.get("reason")
        or phase
    )
    return ReplicaState(
        replica=label_of(pod),
        pod=metadata["name"],
        phase=phase,
        state=in_words,
        node=(pod.get("spec") or {}).get("nodeName") or "",
        exit_code=ended.get("exitCode"),
        since=metadata.get("deletionTimestamp")
        or ended.get("finishedAt")
        or running.get("startedAt")
        or status.get("startTime")
        or metadata.get("creationTimestamp")
        or "",
        finished=moment(ended.get("finishedAt")) or ended_without_container(status_of(pod)),
        why=""
        if outcome == "stopped"
        else (why_not_started(pod) if not (running or ended) else ended.get("message") or status.get("message") or ""),
        reason=ended.get("reason") or "",
        outcome=outcome,
    )


def first_failed(states: Iterable[ReplicaState]) -> ReplicaState | None:
    """Return the replica whose failure was the cause: the rest of its gang is stopped within the same second."""
    failed = (state for state in states if state.has_failed)
    return min(failed, key=lambda one: cause_order(one.finished, one.exit_code, one.reason), default=None)
