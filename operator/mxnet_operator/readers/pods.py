"""Reader of a pod's JSON: outcome of its replica, which container keeps it waiting, which failure came first.

The one reader of all that show or judge pods: `plan` by the controller's projection, `mxjob`, and the Airflow
provider. Whatever isn't named here is skipped.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.exit_codes import OUT_OF_MEMORY

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
Outcome = Literal["unfinished", "succeeded", "failed", "stopped"]
Time = Annotated[datetime, msgspec.Meta(tz=True)]

ENDED: Final = frozenset({"Succeeded", "Failed"})
"""Phases of a pod whose containers have ended for good."""
PROCESS: Final = "process://"
"""Beginning of a container's ID on the local cluster, where containers are processes."""
STOP: Final = 1
"""Value of spec.activeDeadlineSeconds by which the controller stops a pod and keeps its logs."""


class Wire(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Base of the types below: absent fields take their defaults, unknown ones are skipped."""


class Terminated(Wire, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None


class Running(Wire, frozen=True):
    started_at: Time | None = None


class Waiting(Wire, frozen=True):
    reason: str = ""
    message: str = ""


class ContainerState(Wire, frozen=True):
    """State of a container: one of the three; none before the kubelet has seen the pod."""

    terminated: Terminated | None = None
    running: Running | None = None
    waiting: Waiting | None = None


class ContainerStatus(Wire, frozen=True):
    name: str = ""
    state: ContainerState | None = None


class Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class PodStatus(Wire, frozen=True):
    """Status of a pod, as written by the kubelet and the scheduler."""

    phase: Phase = "Pending"
    reason: str = ""
    message: str = ""
    start_time: Time | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    conditions: list[Condition] | None = None


class _Pod(Wire, frozen=True):
    status: PodStatus = PodStatus()


class End(msgspec.Struct, frozen=True):
    how: Terminated
    init_container: str = ""
    """Init container whose failure kept the `mxnet` container from starting; empty where that one ended."""


P = TypeVar("P", bound=Mapping[str, Any])

_POSITIONS: Final = {kind.lower(): position for position, kind in enumerate(names.REPLICA_TYPES)}
_NOTHING: Final = ContainerState()
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_STOPPED: Final = frozenset({137, 143})
"""Exit codes of SIGKILL and SIGTERM."""
_DEADLINE: Final = "DeadlineExceeded"
"""Reason of a pod that ran past its spec.activeDeadlineSeconds."""
PREPARING: Final = "ContainerCreating"
"""Reason for which the kubelet's containers wait while it prepares them."""
_ORDINARY_WAITS: Final = frozenset({"", PREPARING, "PodInitializing"})
"""Reasons for which containers wait without any error."""


def status_of(pod: Mapping[str, Any]) -> PodStatus:
    """Return the status of a pod that is JSON already; an empty one where it is none that a kubelet writes."""
    try:
        return msgspec.convert({"status": pod.get("status") or {}}, _Pod).status
    except msgspec.ValidationError:
        return PodStatus()


def main_state(status: PodStatus) -> ContainerState:
    """Return the state of the `mxnet` container, which decides about its replica."""
    containers = status.container_statuses or ()
    return next((one.state for one in containers if one.name == names.CONTAINER and one.state), _NOTHING)


def has_log(pod: Mapping[str, Any]) -> bool:
    """Return whether the `mxnet` container runs or ran, so that there is a log."""
    state = main_state(status_of(pod))
    return state.running is not None or state.terminated is not None


def is_log_complete(pod: Mapping[str, Any]) -> bool:
    """Return whether the `mxnet` container has ended, or its whole pod, so that the log doesn't grow any more."""
    status = status_of(pod)
    return main_state(status).terminated is not None or status.phase in ENDED


def label_of(pod: Mapping[str, Any]) -> str:
    """Return the short name of a pod's replica, such as `worker-0`; `?` where a label is missing."""
    labels = pod["metadata"].get("labels") or {}
    return f"{labels.get(names.LABEL_REPLICA_TYPE, '?')}-{labels.get(names.LABEL_REPLICA_INDEX, '?')}"


def in_order(pods: Iterable[P]) -> list[P]:
    """Sort pods by the type of their replica, as the types are created, and by its number."""
    return sorted(pods, key=_order)


def _order(pod: Mapping[str, Any]) -> tuple[int, int, str]:
    labels = pod["metadata"].get("labels") or {}
    kind = labels.get(names.LABEL_REPLICA_TYPE, "")
    return _POSITIONS.get(kind, len(_POSITIONS)), _index(labels), pod["metadata"]["name"]


def _index(labels: Mapping[str, str]) -> int:
    index = labels.get(names.LABEL_REPLICA_INDEX, "")
    return int(index) if index.isdigit() else -1


def summary_of(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the replica of a pod as reports and Airflow tasks have it, in JSON: times in RFC 3339, or None."""
    metadata, (_, ended) = pod["metadata"], terminated_of(pod)
    labels = metadata.get("labels") or {}
    main = names.main_container((pod.get("status") or {}).get("containerStatuses"))
    running = (main.get("state") or {}).get("running") or {}
    return {
        "pod": metadata["name"],
        "type": labels.get(names.LABEL_REPLICA_TYPE, ""),
        "index": _index(labels),
        "created_at": metadata.get("creationTimestamp"),
        "started_at": (ended or running).get("startedAt"),
        "finished_at": ended.get("finishedAt"),
        "exit_code": ended.get("exitCode"),
        "outcome": outcome_of(pod),
    }


def is_owned_by(pod: Mapping[str, Any], uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in pod["metadata"].get("ownerReferences") or ())


def outcome_from(
    *, phase: Phase, pod_reason: str, exit_code: int | None, reason: str, deleting: bool, stop_requested: bool
) -> Outcome:
    """Return the outcome of a replica: the exit code decides, and where there is none the phase of the pod.

    Stopped is a replica that was killed (137, 143), or never started, because its pod was deleted or the controller
    gave it its deadline of one second; with another exit code the program ended by itself. Exit code 0 of a pod that
    its kubelet ended (Evicted, its own deadline) is a failure, since programs exit with 0 on SIGTERM, too.

    Args:
        phase: The pod's.
        pod_reason: Reason of the pod itself, such as Evicted.
        exit_code: Of the container that decides: `mxnet`, or an init container that failed before it; None while it
            has not ended.
        reason: Kubelet's reason for the end of that container, such as OOMKilled.
        deleting: Whether the pod has a deletionTimestamp.
        stop_requested: Whether its spec.activeDeadlineSeconds is `STOP`.
    """
    if exit_code is None and phase not in ENDED:
        return "unfinished"
    asked = (stop_requested and pod_reason == _DEADLINE) or (deleting and not pod_reason)
    if exit_code == 0:
        return "failed" if phase == "Failed" and pod_reason and not asked else "succeeded"
    if exit_code is None and phase == "Succeeded":
        return "succeeded"
    return "stopped" if asked and (exit_code is None or _is_killed(exit_code, reason)) else "failed"


def outcome_of(pod: Mapping[str, Any]) -> Outcome:
    status, metadata, spec = status_of(pod), pod.get("metadata") or {}, pod.get("spec") or {}
    end = end_of(status)
    return outcome_from(
        phase=status.phase,
        pod_reason=status.reason,
        exit_code=end.how.exit_code if end is not None else None,
        reason=end.how.reason if end is not None else "",
        deleting="deletionTimestamp" in metadata,
        stop_requested=spec.get("activeDeadlineSeconds") == STOP,
    )


def has_failed(pod: Mapping[str, Any]) -> bool:
    return outcome_of(pod) == "failed"


def end_of(status: PodStatus) -> End | None:
    """Return how the replica ended: by its `mxnet` container, or by a failed init container; None while it has not."""
    ended = main_state(status).terminated
    if ended is not None:
        return End(ended)
    return _failed_init(status) if status.phase == "Failed" else None


def terminated_of(pod: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the `terminated` state by which a replica ended, and the name of the init container it belongs to, if any.

    `{}` while the replica has not ended, and where only the whole pod's phase says that it has.
    """
    end = end_of(status_of(pod))
    init_container = end.init_container if end is not None else ""
    statuses = (pod.get("status") or {}).get("initContainerStatuses" if init_container else "containerStatuses") or ()
    states = (one.get("state") or {} for one in statuses if one.get("name") == (init_container or names.CONTAINER))
    return init_container, dict(next(states, {}).get("terminated") or {})


def waiting_of(status: PodStatus) -> tuple[str, Waiting]:
    """Return the container that keeps the pod from starting, and why: the first with an error, else `mxnet`."""
    containers = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    waiting = {one.name: one.state.waiting for one in containers if one.state and one.state.waiting}
    wrong = ((name, why) for name, why in waiting.items() if why.reason not in _ORDINARY_WAITS)
    return next(wrong, (names.CONTAINER if names.CONTAINER in waiting else "", waiting.get(names.CONTAINER, Waiting())))


def why_not_started(pod: Mapping[str, Any]) -> str:
    """Return why a pod has no log yet, in the kubelet's or the scheduler's words; empty where neither says.

    Without the reason while nothing is wrong: a message then says how far things have come.
    """
    status = status_of(pod)
    _, waiting = waiting_of(status)
    if waiting.reason:
        words = (waiting.message,) if waiting.reason == PREPARING else (waiting.reason, waiting.message)
    else:
        unscheduled = (each for each in status.conditions or () if each.type == "PodScheduled")
        why = next((each for each in unscheduled if each.status == "False"), Condition())
        words = (why.reason, why.message)
    return ": ".join(filter(None, words))


def cause_order(ended: datetime | None, exit_code: int | None, reason: str) -> tuple[datetime, bool]:
    """Return a sort key by which the failure that caused the others comes first.

    The earliest is the cause; in one second, one that ended by itself precedes one that was killed: Kubernetes'
    times are whole seconds, in which a gang's mates are often stopped for the first failure. Killed for its memory
    is a cause of its own.
    """
    return ended or _NEVER, _is_killed(exit_code, reason)


def ended_without_container(status: PodStatus) -> datetime | None:
    """Return when a pod without a container status ended: the time since which its containers are not ready."""
    if status.phase not in ENDED:
        return None
    ends = (c.last_transition_time for c in status.conditions or () if (c.type, c.status) == ("Ready", "False"))
    return next(ends, None)


def _is_killed(exit_code: int | None, reason: str) -> bool:
    return exit_code in _STOPPED and reason != OUT_OF_MEMORY


def _failed_init(status: PodStatus) -> End | None:
    """Return the failure of an init container that ended the pod.

    Sidecars among them are stopped after it, and come before it in the list.
    """
    ends = [
        End(one.state.terminated, one.name)
        for one in status.init_container_statuses or ()
        if one.state and one.state.terminated
    ]
    failed = [end for end in reversed(ends) if end.how.exit_code]
    return min(failed, key=lambda end: (end.how.finished_at is None, end.how.finished_at or _EPOCH), default=None)
