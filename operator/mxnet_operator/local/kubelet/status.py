"""Status of a pod from its containers, and its writer: only changes, one write at a time, with retries."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mxnet_operator.kube.backoff import Backoff
from mxnet_operator.kube.client import MERGE_PATCH, Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.local.events import now
from mxnet_operator.local.waiting import Changes, Timing
from mxnet_operator.readers.pods import ENDED

State = dict[str, Any]

MESSAGE_LIMIT = 4096
OWN_CONDITIONS = frozenset({"Initialized", "Ready", "ContainersReady", "PodScheduled"})
"""Pod conditions that the kubelet owns; it keeps all others."""
START_ERROR = 128
LOST_EXIT_CODE = 137
LOST_REASON = "ContainerStatusUnknown"
LOST_MESSAGE = "The container could not be located when the pod was terminated"


def waiting(reason: str, message: str = "") -> State:
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def running(started_at: str) -> State:
    return {"running": {"startedAt": started_at}}


def terminated(exit_status: int, started_at: str, message: str, container_id: str, *, reason: str = "") -> State:
    """Build the state of a terminated container; `exit_status` is negative for a signal, as in subprocess.

    A signal N becomes the exit code 128 + N, as container runtimes have it.
    """
    ended: dict[str, Any] = {"exitCode": exit_status if exit_status >= 0 else 128 - exit_status}
    if exit_status < 0:
        ended["signal"] = -exit_status
    ended["reason"] = reason or ("Error" if exit_status else "Completed")
    if message:
        ended["message"] = message
    return {"terminated": {**ended, "startedAt": started_at, "finishedAt": now(), "containerID": container_id}}


def start_error(message: str) -> State:
    """Build the state of a container whose program can't be executed (containerd's StartError, exit code 128)."""
    time = now()
    return {
        "terminated": {
            "exitCode": START_ERROR,
            "reason": "StartError",
            "message": message,
            "startedAt": time,
            "finishedAt": time,
        }
    }


def lost() -> State:
    """Build the state of a container that never ran or whose end was missed, in the words of the real kubelet."""
    return {"terminated": {"exitCode": LOST_EXIT_CODE, "reason": LOST_REASON, "message": LOST_MESSAGE}}


@dataclass(slots=True)
class ContainerRecord:
    """Record of one container of a pod."""

    spec: Mapping[str, Any]
    initial: bool
    state: State = field(default_factory=lambda: waiting("ContainerCreating"))
    container_id: str = ""

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def exit_code(self) -> int | None:
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])

    @property
    def ready(self) -> bool:
        """Whether the container is ready; probes are not supported."""
        if self.initial:
            return "terminated" in self.state and self.exit_code == 0
        return "running" in self.state

    def status(self) -> dict[str, Any]:
        image = str(self.spec.get("image") or "")
        return {
            "name": self.name,
            "image": image,
            "imageID": image,
            "ready": self.ready,
            "started": "running" in self.state,
            "restartCount": 0,
            "state": self.state,
            "lastState": {},
            **({"containerID": self.container_id} if self.container_id else {}),
        }


def phase(records: Sequence[ContainerRecord], over: bool) -> str:
    """Compute the phase of a pod (kubelet's getPhase); `over` tells that no further container will be started."""
    initial = [each for each in records if each.initial]
    if any(each.exit_code not in (0, None) for each in initial) and over:
        return "Failed"
    containers = [each for each in records if not each.initial]
    if over:
        return "Succeeded" if all(each.exit_code == 0 for each in containers) else "Failed"
    if not all(each.ready for each in initial) or any("waiting" in each.state for each in containers):
        return "Pending"
    if any("running" in each.state for each in containers):
        return "Running"
    return "Succeeded" if all(each.exit_code == 0 for each in containers) else "Failed"


def conditions(
    found: Sequence[Mapping[str, Any]], records: Sequence[ContainerRecord], phase: str
) -> list[dict[str, Any]]:
    """Update the pod's conditions from its containers; conditions of other owners are kept."""
    done = phase in ENDED
    unready_init = [each.name for each in records if each.initial and not each.ready]
    unready = [each.name for each in records if not each.initial and not each.ready]
    incomplete = f"containers with incomplete status: [{' '.join(unready_init)}]"
    why_not = {"reason": "ContainersNotInitialized", "message": incomplete} if unready_init else {}
    wanted = [_condition("Initialized", not unready_init, why_not), _condition("PodScheduled", True, {})]
    not_ready = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{' '.join(unready)}]"}
    why_not = {"reason": "PodCompleted"} if done else not_ready if unready else {}
    wanted += [_condition(kind, not why_not, why_not) for kind in ("Ready", "ContainersReady")]
    before = {each["type"]: dict(each) for each in found}
    for condition in wanted:
        old = before.get(condition["type"], {})
        changed = old.get("status") != condition["status"]
        since = now() if changed else old.get("lastTransitionTime", now())
        before[condition["type"]] = {**condition, "lastTransitionTime": since}
    return list(before.values())


def _condition(kind: str, status: bool, why: Mapping[str, str]) -> dict[str, Any]:
    return {"type": kind, "status": str(status), **why}


_LOG = logging.getLogger(__name__)


class StatusWriter:
    """Writer of one pod's status, computed by `status`; `pod` returns the latest version of the pod's API object."""

    def __init__(
        self,
        client: Client,
        timing: Timing,
        pod: Callable[[], dict[str, Any]],
        status: Callable[[], dict[str, Any]],
    ) -> None:
        self._client = client
        self._pod = pod
        self._status = status
        self._backoff = Backoff(timing.api_retry, timing.api_retry_limit)
        self._changes = Changes()
        self._last: dict[str, Any] = {}
        self._wanted = 0
        self._done = 0
        self._closed = False

    def changed(self) -> None:
        """Notify the writer of a possible change of the status."""
        self._wanted += 1
        self._changes.notify()

    def close(self) -> None:
        """Stop writing, since the pod no longer exists."""
        self._closed = True
        self._changes.notify()

    async def run(self) -> None:
        """Write every change of the status, until closed or cancelled."""
        while not self._closed:
            if self._done == self._wanted:
                await self._changes.wait()
            else:
                await self._retried(self._write)

    async def written(self) -> None:
        """Wait until every change is written, or the writer is closed."""
        while self._done != self._wanted and not self._closed:
            await self._changes.wait()

    async def confirm_deletion(self) -> None:
        """Delete the pod from the API, by its uid, once its processes have ended."""
        metadata = self._pod()["metadata"]
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
        path = PODS.path(metadata["namespace"], metadata["name"])
        await self._retried(lambda: self._client.delete(path, body))

    async def _write(self) -> None:
        wanted, status = self._wanted, self._status()
        if status != self._last:
            metadata = self._pod()["metadata"]
            path = PODS.path(metadata["namespace"], metadata["name"], "status")
            await self._client.patch(path, {"metadata": {"uid": metadata["uid"]}, "status": status}, MERGE_PATCH)
            self._last = status
        self._done = wanted
        self._changes.notify()

    async def _retried(self, request: Callable[[], Awaitable[object]]) -> None:
        failures = 0
        while not self._closed:
            try:
                await request()
                return
            except ApiError as error:
                if error.code in {404, 409}:  # the pod has gone, or is another one by now
                    self.close()
                    return
                why: Exception = error
            except KubeError as error:
                why = error
            failures += 1
            _LOG.warning("pod %s: %s", self._pod()["metadata"]["name"], why)
            await asyncio.sleep(self._backoff.delay(failures))
