"""Node object of this machine, with its capacity and heartbeat."""

import asyncio
import logging
import os
import platform
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mxnet_operator.kube.backoff import Backoff
from mxnet_operator.kube.client import MERGE_PATCH, Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import NODES
from mxnet_operator.local.events import now
from mxnet_operator.local.kubelet.devices import DeviceKind
from mxnet_operator.local.kubelet.loopback import ADDRESSES
from mxnet_operator.local.waiting import Timing
from mxnet_operator.readers.pods import PROCESS

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class NodeOptions:
    """What the node offers; None stands for what this machine has."""

    cpus: float | None = None
    gpus: int | None = None
    gpu_share: int = 1
    """Containers that may share a GPU."""
    resources: tuple[tuple[str, int], ...] = ()
    """Names and counts of further resources."""
    node_labels: tuple[tuple[str, str], ...] = ()
    """Keys and values of labels, in addition to every node's own labels."""


def capacity(cpus: float | None, devices: Iterable[DeviceKind], folder: Path) -> dict[str, str]:
    """Return the capacity of the machine as quantities; all of its CPUs unless `cpus` is given.

    Its ephemeral storage is the disk of `folder`, which need not exist yet.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    disk = shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.exists()))
    offered = {
        "cpu": f"{cpus if cpus is not None else os.cpu_count() or 1:g}",
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{disk.total // 1024}Ki",
        "pods": str(ADDRESSES),
    }
    return {**offered, **{kind.resource: str(kind.amount) for kind in devices}}


def labels(name: str) -> dict[str, str]:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": machine}


class NodeKeeper:
    """Registration and heartbeat of the node."""

    def __init__(
        self, client: Client, name: str, offered: Mapping[str, str], timing: Timing, extra_labels: Mapping[str, str]
    ) -> None:
        self._client = client
        self._name = name
        self._offered = dict(offered)
        self._timing = timing
        self._labels = {**extra_labels, **labels(name)}
        self._since = now()

    async def run(self) -> None:
        """Send heartbeats until cancelled, and register the node wherever it isn't known; retries on failures."""
        backoff, failures = Backoff(self._timing.api_retry, self._timing.api_retry_limit), 0
        while True:
            try:
                await self._heartbeat()
                failures = 0
                await asyncio.sleep(self._timing.node_heartbeat)
            except KubeError as error:
                failures += 1
                _LOG.info("node %s: %s", self._name, error)
                await asyncio.sleep(backoff.delay(failures))

    async def _heartbeat(self) -> None:
        try:
            await self._report()
        except ApiError as error:
            if error.code != 404:
                raise
            metadata = {"name": self._name, "labels": self._labels}
            await self._client.create(NODES.path(), {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
            await self._report()

    async def _report(self) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastHeartbeatTime": now(),
            "lastTransitionTime": self._since,
        }
        status: dict[str, Any] = {
            "capacity": self._offered,
            "allocatable": self._offered,
            "conditions": [ready],
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": self._name},
            ],
            "nodeInfo": {  # clients read all of its fields: the official one of Python requires them
                "architecture": labels(self._name)["kubernetes.io/arch"],
                "bootID": "",
                "containerRuntimeVersion": f"{PROCESS}1",
                "kernelVersion": platform.release(),
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.32.0",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "this machine",
                "systemUUID": "",
            },
        }
        await self._client.patch(NODES.path(name=self._name, subresource="status"), {"status": status}, MERGE_PATCH)
