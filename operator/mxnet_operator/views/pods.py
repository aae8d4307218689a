"""A pod's JSON: how its replica ended, which container keeps it waiting, and which of several failures came first.

One reading for everybody who shows or judges pods: `plan` by the controller's projection, `mxjob`, and the Airflow
provider. Whatever isn't named here is skipped.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from mxnet_operator.api import names

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Wire(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Base of the shapes below: absent fields take their defaults, unknown ones are skipped."""


class Terminated(Wire, frozen=True):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None


class Running(Wire, frozen=True):
    """Since when a container runs."""

    started_at: Time | None = None


class Waiting(Wire, frozen=True):
    """Why a container has not started."""

    reason: str = ""
    message: str = ""


class ContainerState(Wire, frozen=True):
    """One of the three; none before the kubelet has seen the pod."""

    terminated: Terminated | None = None
    running: Running | None = None
    waiting: Waiting | None = None


class ContainerStatus(Wire, frozen=True):
    """One container of a pod."""

    name: str = ""
    state: ContainerState | None = None


class Condition(Wire, frozen=True):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class PodStatus(Wire, frozen=True):
    """What the kubelet and the scheduler say of a pod."""

    phase: Phase = "Pending"
    reason: str = ""
    message: str = ""
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    conditions: list[Condition] | None = None


class _Pod(Wire, frozen=True):
    status: PodStatus = PodStatus()


class End(msgspec.Struct, frozen=True):
    """How a replica ended."""

    how: Terminated
    init_container: str = ""
    """The init container whose failure kept the `mxnet` container from starting; empty where that one ended."""


_NOTHING: Final = ContainerState()
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_STOPPED: Final = frozenset({137, 143})
"""Exit codes of SIGKILL and SIGTERM."""
_ORDINARY_WAITS: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons for which containers wait while all goes well."""


def status_of(pod: Mapping[str, Any]) -> PodStatus:
    """The status of a pod that is JSON already; an empty one where it is none that a kubelet writes."""
    try:
        return msgspec.convert({"status": pod.get("status") or {}}, _Pod).status
    except msgspec.ValidationError:
        return PodStatus()


def main_state(status: PodStatus) -> ContainerState:
    """The state of the `mxnet` container, which decides about its replica."""
    containers = status.container_statuses or ()
    return next((one.state for one in containers if one.name == names.CONTAINER and one.state), _NOTHING)


def end_of(status: PodStatus) -> End | None:
    """How the replica ended: by its `mxnet` container, or by an init container that failed; None while it has not."""
    ended = main_state(status).terminated
    if ended is not None:
        return End(ended)
    return _failed_init(status) if status.phase == "Failed" else None


def terminated_of(pod: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The `terminated` by which a replica ended, as the server says it, and the init container it is of, if it is.

    `{}` while the replica has not ended, and where only the whole pod's phase says that it has.
    """
    end = end_of(status_of(pod))
    init_container = end.init_container if end is not None else ""
    statuses = (pod.get("status") or {}).get("initContainerStatuses" if init_container else "containerStatuses") or ()
    states = (one.get("state") or {} for one in statuses if one.get("name") == (init_container or names.CONTAINER))
    return init_container, dict(next(states, {}).get("terminated") or {})


def waiting_of(status: PodStatus) -> tuple[str, Waiting]:
    """The container that keeps the pod from starting, and why: the first with something wrong, else `mxnet`."""
    containers = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    waiting = {one.name: one.state.waiting for one in containers if one.state and one.state.waiting}
    wrong = ((name, why) for name, why in waiting.items() if why.reason not in _ORDINARY_WAITS)
    return next(wrong, (names.CONTAINER if names.CONTAINER in waiting else "", waiting.get(names.CONTAINER, Waiting())))


def cause_order(ended: datetime | None, exit_code: int | None, reason: str) -> tuple[datetime, bool]:
    """Sorts failures by which was the cause: the first; in one second, one that ended by itself before one killed.

    Kubernetes' times are whole seconds, in which a gang's mates are often stopped for the first failure. Killed for
    its memory is a cause of its own.
    """
    return ended or _NEVER, exit_code in _STOPPED and reason != "OOMKilled"


def _failed_init(status: PodStatus) -> End | None:
    """The failure of an init container that ended the pod.

    Sidecars among them are stopped after it, and come before it in the list.
    """
    ends = [
        End(one.state.terminated, one.name)
        for one in status.init_container_statuses or ()
        if one.state and one.state.terminated
    ]
    failed = [end for end in reversed(ends) if end.how.exit_code]
    return min(failed, key=lambda end: (end.how.finished_at is None, end.how.finished_at or _EPOCH), default=None)
