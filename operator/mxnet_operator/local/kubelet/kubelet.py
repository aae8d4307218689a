"""Kubelet: watch the pods of a node, run them as processes, and stop them all at its end."""

import asyncio
import os
import re
import shutil
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

import msgspec

from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.resources import NODES, PODS, SERVICES
from mxnet_operator.local.events import EventRecorder
from mxnet_operator.local.home import CLAIMS
from mxnet_operator.local.images.store import ImageStore
from mxnet_operator.local.kubelet.devices import Devices, device_kinds
from mxnet_operator.local.kubelet.host import Host
from mxnet_operator.local.kubelet.logs import Logs
from mxnet_operator.local.kubelet.loopback import Addresses, AddressesExhausted, PodIndex
from mxnet_operator.local.kubelet.node import NodeKeeper, NodeOptions, capacity
from mxnet_operator.local.kubelet.pod import Pod
from mxnet_operator.local.kubelet.pod_files import outlives_cluster
from mxnet_operator.local.kubelet.processes import Processes, cluster_id
from mxnet_operator.local.kubelet.short_path import ShortPath
from mxnet_operator.local.kubelet.volume_claims import VolumeClaims
from mxnet_operator.local.scheduling.scheduler import Scheduler
from mxnet_operator.local.waiting import Changes, Timing

Object = dict[str, Any]

NODE = "local"
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Kubelet:
    """Kubelet of one node, which it registers.

    Args:
        state_dir: Folder of its own, for logs and the pods' files. Two kubelets must not share one: processes that an
            earlier life of the same folder left behind are killed at the start.
        subnet: First two numbers of the /16 of loopback addresses that pods get: "127.77".
    """

    def __init__(
        self,
        client: Client,
        state_dir: Path,
        images: ImageStore,
        subnet: str,
        options: NodeOptions = NodeOptions(),  # noqa: B008 - frozen
        *,
        timing: Timing = Timing(),  # noqa: B008 - frozen
    ) -> None:
        devices = device_kinds(os.environ, gpus=options.gpus, share=options.gpu_share, counts=dict(options.resources))
        folder = state_dir.absolute()
        offered = capacity(options.cpus, devices, folder)
        self.log_source = Logs()
        self._cache: Indexer[Object] = Indexer()
        self._services: Indexer[Object] = Indexer()
        self._client = client
        self._timing = timing
        self._addresses = Addresses(subnet)
        self._pods: dict[str, Pod] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._clean_ups: set[asyncio.Task[None]] = set()
        self._scheduler_events = EventRecorder(client, "default-scheduler", NODE)
        pods_changed = Changes()
        self._volume_claims = VolumeClaims(client, folder / CLAIMS, self._cache.values, pods_changed, timing)
        short_path = ShortPath(folder)
        self._host = Host(
            client=client,
            folder=folder,
            short_path=short_path,
            images=images,
            processes=Processes(cluster_id(folder), short_path.link),
            devices=Devices(devices),
            logs=self.log_source,
            events=EventRecorder(client, "kubelet", NODE),
            timing=timing,
            pods=PodIndex(),
            service_of=lambda namespace, name: self._services.get(f"{namespace}/{name}"),
            pods_changed=pods_changed,
            volume_claims=self._volume_claims,
        )
        self._node = NodeKeeper(client, NODE, offered, timing, dict(options.node_labels))
        self._reflector = Reflector(client, PODS, self._cache, _decode, self._changed)
        self._service_reflector = Reflector(client, SERVICES, self._services, _decode, lambda *_: None)
        self._nodes: Indexer[Object] = Indexer()
        self._node_reflector = Reflector(client, NODES, self._nodes, _decode, lambda *_: pods_changed.notify())
        self._scheduler = Scheduler(
            client,
            NODE,
            allocatable=offered,
            node=lambda: self._nodes.get(NODE),
            pods=self._cache.values,
            why_blocked=self._volume_claims.why_unusable,
            changes=pods_changed,
            events=self._scheduler_events,
        )

    async def run(self) -> None:
        """Run pods until cancelled; on return every process of a pod has ended: by SIGTERM, a short grace, SIGKILL."""
        await asyncio.to_thread(self._host.folder.mkdir, 0o700, parents=True, exist_ok=True)
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._host.processes.start()
            parts = (self._service_reflector.run(), self._reflector.run(), self._remove_left_overs())
            tasks += [asyncio.create_task(each) for each in (*parts, *await self._node_parts())]
            await asyncio.gather(*tasks)
        finally:
            await _cancelled(tasks)
            await self._take_down()

    async def _node_parts(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """Return the tasks that make this a node of its control plane; tests replace them for a real Kubernetes."""
        return self._node.run(), self._node_reflector.run(), self._scheduler.run(), self._volume_claims.run()

    async def _take_down(self) -> None:
        for pod in self._pods.values():
            pod.abandon(self._timing.stop_grace)
        await asyncio.gather(*(pod.ended.wait() for pod in self._pods.values()))
        await _cancelled(self._tasks)
        await asyncio.gather(*self._clean_ups)
        await self._host.processes.stop()
        self._host.short_path.remove()
        await self._host.events.stop()
        await self._scheduler_events.stop()

    def _changed(self, old: Object | None, new: Object | None) -> None:
        """Handle a change of a pod of any node; callback of the reflector."""
        self._host.pods.change(old, new)
        if old is not None and (new is None or new["metadata"]["uid"] != old["metadata"]["uid"]):
            self._vanished(old)
        if new is not None and new["spec"].get("nodeName"):  # whatever its name: there is one node
            known = self._pods.get(new["metadata"]["uid"])
            if known is not None:
                known.update(new)
            else:
                self._admit(new)
        self._host.pods_changed.notify()

    def _admit(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        try:
            address = self._addresses.take(uid)
        except AddressesExhausted as error:
            self._host.events.record(pod, "Warning", "FailedCreatePodSandBox", str(error))
            return
        run = Pod(self._host, pod, address)
        self._pods[uid] = run
        task = asyncio.create_task(run.run(), name=f"pod {pod['metadata']['name']}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _vanished(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        run = self._pods.get(uid)
        if run is not None:
            run.abandon(0)
        task = asyncio.create_task(self._forget(uid, run))
        self._clean_ups.add(task)
        task.add_done_callback(self._clean_ups.discard)

    async def _forget(self, uid: str, run: Pod | None) -> None:
        """Clean up after a pod that the API no longer has, once its processes have ended."""
        if run is not None:
            await run.ended.wait()
        self._pods.pop(uid, None)
        self._addresses.free(uid)
        self._host.logs.forget(uid)
        self._host.events.forget(uid)
        self._scheduler_events.forget(uid)
        await asyncio.to_thread(shutil.rmtree, self._host.folder / uid, ignore_errors=True)

    async def _remove_left_overs(self) -> None:
        """Remove the folders of pods that the API server no longer has, but for those with files of the last days."""
        await self._reflector.synced.wait()
        found = await asyncio.to_thread(
            lambda: [each for each in self._host.folder.iterdir() if _UID.fullmatch(each.name)]
        )
        # What is known is looked up after the folders, so that one made meanwhile is never taken for a left-over.
        known = {pod["metadata"]["uid"] for pod in self._cache.values()}
        for folder in found:
            if folder.name not in known and not await asyncio.to_thread(outlives_cluster, folder):
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
