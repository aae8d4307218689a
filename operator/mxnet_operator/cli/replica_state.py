"""One replica as its pod shows it: in which state, since when, on which node, with which exit code, and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mxnet_operator.api import names
from mxnet_operator.cli.follow_logs import waiting_for
from mxnet_operator.cli.times import moment
from mxnet_operator.views.pods import cause_order, terminated_of


@dataclass(frozen=True)
class ReplicaState:
    """What the commands tell of a replica; texts are empty where the pod doesn't say."""

    replica: str
    """Such as `worker-0`."""
    pod: str
    phase: str
    state: str
    """The phase in more detail: `ContainerCreating`, `Completed`, `Terminating`."""
    node: str
    exit_code: int | None
    since: str
    """When it came into this state, in the API's form."""
    finished: str
    why: str
    """Why it waits, or what it said at its end."""
    reason: str = ""
    """Why its container ended, in the kubelet's word."""

    @property
    def has_failed(self) -> bool:
        """Whether its container ended with another code than 0."""
        return bool(self.exit_code)

    @property
    def told(self) -> str:
        """The line of `why` that says most: the last one of a failure's log, else the first."""
        lines = [line for line in self.why.splitlines() if line.strip()]
        return lines[-1 if self.has_failed else 0].strip() if lines else ""


def replica_state(pod: dict[str, Any]) -> ReplicaState:
    """What a pod tells of its replica."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels = metadata.get("labels") or {}
    containers: list[dict[str, Any]] = status.get("containerStatuses") or []
    container = next((one for one in containers if one.get("name") == names.CONTAINER), {})
    state = container.get("state") or {}
    running, waiting = (state.get(key) or {} for key in ("running", "waiting"))
    init_container, ended = terminated_of(pod)  # of one that failed the kubelet still says PodInitializing of mxnet
    phase = status.get("phase") or "Pending"
    in_words = (
        (metadata.get("deletionTimestamp") and "Terminating")
        or (f"Init:{ended.get('reason') or 'Error'}" if init_container else ended.get("reason"))
        or (running and "Running")
        or waiting.get("reason")
        or status.get("reason")
        or phase
    )
    return ReplicaState(
        replica=f"{labels.get(names.LABEL_REPLICA_TYPE, '?')}-{labels.get(names.LABEL_REPLICA_INDEX, '?')}",
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
        finished=ended.get("finishedAt") or "",
        why=waiting_for(pod) if not (running or ended) else ended.get("message") or status.get("message") or "",
        reason=ended.get("reason") or "",
    )


def first_failed(states: Iterable[ReplicaState]) -> ReplicaState | None:
    """The replica whose failure was the cause: the others of its gang are stopped within the same second."""
    failed = (state for state in states if state.has_failed)
    return min(failed, key=lambda one: cause_order(moment(one.finished), one.exit_code, one.reason), default=None)


def in_order(states: list[ReplicaState]) -> list[ReplicaState]:
    """Sorted as replicas are made, and by number."""
    kinds = {kind.lower(): position for position, kind in enumerate(names.REPLICA_TYPES)}

    def key(state: ReplicaState) -> tuple[int, int, str]:
        kind, _, index = state.replica.rpartition("-")
        return kinds.get(kind, len(kinds)), int(index) if index.isdigit() else 0, state.pod

    return sorted(states, key=key)
