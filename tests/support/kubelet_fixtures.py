"""A kubelet on a real local API server, and images that need no building: this interpreter."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from apiserver_fixtures import running_server
from waiting import patience, while_runs

from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.resources import EVENTS, PODS
from mxnet_operator.local.claims import claim_subnet
from mxnet_operator.local.images.folder import Start
from mxnet_operator.local.images.store import Image, ReadyImage
from mxnet_operator.local.images.uv_process import ImageError
from mxnet_operator.local.kubelet.kubelet import Kubelet
from mxnet_operator.local.kubelet.node import NodeOptions
from mxnet_operator.local.kubelet.reaper import CLUSTER_MARKER, marked
from mxnet_operator.local.waiting import Timing

IMAGE = "test/this-python:1"
IMPATIENT = Timing(
    image_retry=0.05,
    setup_retry=0.05,
    name_notice=0.05,
    name_limit=0.5,
    stop_grace=2.0,
    api_retry=0.05,
    api_retry_limit=0.2,
)


class ThisInterpreterAsImages:
    """Stands for the ImageStore: every image it knows is the Python that runs the tests."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.start = Start()
        self.library_path = ""
        self.known = {IMAGE}
        self.broken: dict[str, ImageError] = {}

    def resolve(self, name: str) -> Image | None:
        return Image(name, self.folder, None) if name in self.known else None

    def how_to_add(self, name: str) -> str:
        return f"no image {name}; add it"

    def ready(self, image: Image) -> bool:
        return image.name not in self.broken

    async def ensure(self, image: Image, progress: Any = None) -> ReadyImage:
        if image.name in self.broken:
            raise self.broken[image.name]
        return ReadyImage(Path(sys.executable), Path(sys.executable).parent, self.folder, self.start, self.library_path)


@dataclass
class Node:
    """A running kubelet with the client that the test speaks to its API server with."""

    kubelet: Kubelet
    client: Client
    images: ThisInterpreterAsImages
    folder: Path
    subnet: str
    running_kubelet: "asyncio.Task[None]"
    namespace: str = "default"

    async def stop(self) -> None:
        await cancelled(self.running_kubelet)

    async def create(self, pod: dict[str, Any]) -> Any:
        return await self.client.create(PODS.path(self.namespace), pod)

    async def run(self, name: str, *command: str, **spec: Any) -> Any:
        """Create a pod with one container, and return it when it has ended."""
        await self.create(make_pod(name, *command, **spec))
        return await self.ended(name)

    async def get(self, name: str) -> Any:
        return await self.client.get(PODS.path(self.namespace, name))

    async def until(self, name: str, holds: Callable[[Any], Any], what: str) -> Any:
        """The pod, once `holds(pod)`; it is watched, not polled."""
        return await while_runs(self.running_kubelet, "the kubelet", self._until(name, holds, what))

    async def _until(self, name: str, holds: Callable[[Any], Any], what: str) -> Any:
        last = None
        path, selector = PODS.path(self.namespace), {"fieldSelector": f"metadata.name={name}"}
        try:
            async with asyncio.timeout(patience()):
                async for line in self.client.watch(path, selector):
                    event = msgspec.json.decode(line)
                    last = event["object"]
                    if event["type"] in {"ADDED", "MODIFIED"} and holds(last):
                        return last
        except TimeoutError:
            pass
        raise AssertionError(f"pod {name} never {what}: {last and last.get('status')}")

    async def ended(self, name: str) -> Any:
        return await self.until(name, lambda pod: pod["status"]["phase"] in {"Succeeded", "Failed"}, "ended")

    async def running(self, name: str) -> Any:
        def runs(pod: dict[str, Any]) -> bool:
            if pod["status"].get("phase") in {"Succeeded", "Failed"}:
                pytest.fail(f"pod {name} has ended before it was seen to run: {pod['status']}")
            return any(state(each, "running") for each in statuses(pod))

        return await self.until(name, runs, "had a running container")

    async def gone(self, name: str) -> None:
        """Wait until the API server has the pod no more."""
        path, query = PODS.path(self.namespace), {"fieldSelector": f"metadata.name={name}"}
        found = await self.client.list(path, query)
        if found["items"]:
            async with asyncio.timeout(patience()):
                version = found["metadata"]["resourceVersion"]
                async for line in self.client.watch(path, {**query, "resourceVersion": version}):
                    if msgspec.json.decode(line)["type"] == "DELETED":
                        return

    async def delete(self, name: str, grace: int | None = None) -> None:
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        await self.client.delete(PODS.path(self.namespace, name), body)

    async def patch(self, name: str, body: Any) -> Any:
        return await self.client.patch(PODS.path(self.namespace, name), body)

    async def log(self, name: str, **query: Any) -> str:
        return (await self.client.get_bytes(PODS.path(self.namespace, name, "log"), query)).decode(
            errors="surrogateescape"
        )

    async def until_log(self, name: str, text: str, **query: Any) -> str:
        """Follow the log until `text` appears; returns what came so far."""
        seen = b""
        await self.running(name)
        async with asyncio.timeout(patience()):
            async for piece in self.client.stream(PODS.path(self.namespace, name, "log"), {"follow": True, **query}):
                seen += piece
                if text.encode() in seen:
                    return seen.decode(errors="surrogateescape")
        raise AssertionError(f"{text!r} never appeared: {seen!r}")

    async def event(self, name: str, reason: str) -> Any:
        """The first event about a pod with this reason, once it is there."""

        async with asyncio.timeout(patience()):
            async for line in self.client.watch(
                EVENTS.path(self.namespace), {"fieldSelector": f"involvedObject.name={name},reason={reason}"}
            ):
                return msgspec.json.decode(line)["object"]
        raise AssertionError(f"no event {reason} about {name}")

    def processes(self) -> Any:
        """The live processes that carry this kubelet's mark."""
        return marked(CLUSTER_MARKER, self.kubelet._host.processes.cluster_id)


def statuses(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return pod["status"].get("containerStatuses") or []


def state(status: dict[str, Any], kind: str) -> Any:
    return status["state"].get(kind)


def terminated(pod: dict[str, Any], container: str = "main") -> dict[str, Any]:
    """The final state of a pod's container."""
    (status,) = [each for each in statuses(pod) if each["name"] == container]
    return dict(status["state"]["terminated"])


def make_pod(
    name: str,
    *command: str,
    env: Any = None,
    container: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod with one container `main`; a single word of command is a shell script."""
    argv = ["sh", "-c", command[0]] if len(command) == 1 else list(command)
    variables = [
        {"name": key, **({"value": value} if isinstance(value, str) else {"valueFrom": value})}
        for key, value in (env or {}).items()
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": IMAGE, "command": argv, "env": variables, **(container or {})}],
            **spec,
        },
    }


async def cancelled(running: "asyncio.Task[None]") -> None:
    """Cancel a kubelet, and wait for the end of its processes."""
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


@asynccontextmanager
async def running_kubelet(
    server: Any, folder: Path, *, images: Any = None, kubeconfig: Path | None = None, **options: Any
) -> AsyncIterator[Node]:
    """A kubelet for a server that runs, which it reaches by another kubeconfig than the test where one is given.

    Its pods' addresses are its own on this machine: another run's gangs meet at the same port.
    """
    images = images or ThisInterpreterAsImages()
    subnet, claim = claim_subnet(folder)
    with claim:
        async with (
            Client(load_credentials(str(server.kubeconfig))) as client,
            Client(load_credentials(str(kubeconfig or server.kubeconfig))) as kubelets_client,
        ):
            offered = NodeOptions(**{"gpus": 0, **options})
            kubelet = Kubelet(kubelets_client, folder / "pods", images, subnet, offered, timing=IMPATIENT)
            server.server.log_source = kubelet.log_source
            running = asyncio.create_task(kubelet.run())
            try:
                yield Node(kubelet, client, images, folder / "pods", subnet, running)
            finally:
                await cancelled(running)


@asynccontextmanager
async def running_node(folder: Path, **options: Any) -> AsyncIterator[Node]:
    """An API server and a kubelet of its own; its files are in `folder`."""
    async with running_server(folder) as server, running_kubelet(server, folder, **options) as node:
        yield node
