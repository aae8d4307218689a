"""What the local scheduler asks of an API server, without one: a dictionary of pods whose watch lags behind."""

import time
from collections.abc import Callable
from typing import Any

from gang_pods import GPU, bound

from mxnet_operator.kube.errors import ApiError
from mxnet_operator.local.scheduling.scheduler import Scheduler
from mxnet_operator.local.waiting import Changes

PATH = "/api/v1/namespaces/default/pods/"
NODE = {"metadata": {"name": "local"}, "spec": {}}
"""The one node, as a watch shows it."""


class StoredPods:
    """An API server of pods alone: by name, with a watch that shows each change later."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.watched: dict[str, dict[str, Any]] = {}
        self.unseen: list[tuple[str, dict[str, Any] | None]] = []

    async def create(self, path: str, binding: Any, **_: Any) -> None:
        name = path.removeprefix(PATH).removesuffix("/binding")
        pod = await self.get(PATH + name)
        if pod["metadata"]["uid"] != binding["metadata"]["uid"] or pod["spec"].get("nodeName"):
            raise ApiError(409, "Conflict", "taken")
        self.write(name, bound(pod))

    async def get(self, path: str) -> dict[str, Any]:
        name = path.removeprefix(PATH)
        if name not in self.stored:
            raise ApiError(404, "NotFound", "gone")
        return self.stored[name]

    async def find(self, path: str) -> dict[str, Any] | None:
        return self.stored.get(path.removeprefix(PATH))

    async def patch(self, path: str, body: Any, *_: Any) -> None:
        name = path.removeprefix(PATH).removesuffix("/status")
        pod = await self.get(PATH + name)
        if pod["metadata"]["uid"] != body["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "another")
        self.write(name, {**pod, "status": {**pod["status"], **body["status"]}})

    def write(self, name: str, pod: dict[str, Any] | None) -> None:
        """Store a pod, or none; the watch shows it in its turn."""
        change(self.stored, name, pod)
        self.unseen.append((name, pod))

    def watch(self, changes: int | None = None) -> None:
        """Show so many of the changes that are not shown yet, the oldest first; all by default."""
        shown = self.unseen[:changes]
        del self.unseen[: len(shown)]
        for name, pod in shown:
            change(self.watched, name, pod)


def change(pods: dict[str, dict[str, Any]], name: str, pod: dict[str, Any] | None) -> None:
    if pod is None:
        del pods[name]
    else:
        pods[name] = pod


class Silent:
    def record(self, *_: Any) -> None: ...


def scheduler_of(
    pods: StoredPods, gpus: int = 8, *, changes: Changes | None = None, clock: Callable[[], float] = time.monotonic
) -> Scheduler:
    """A scheduler of the one node, which has so many GPUs, by what the watch of the pods has shown."""
    return Scheduler(
        pods,  # type: ignore[arg-type]
        "local",
        allocatable={GPU: str(gpus)},
        node=lambda: NODE,
        pods=lambda: list(pods.watched.values()),
        changes=changes or Changes(),
        events=Silent(),  # type: ignore[arg-type]
        clock=clock,
    )
