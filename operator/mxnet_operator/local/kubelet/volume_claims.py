"""Folders of PersistentVolumeClaims: made for the first pod that uses a claim, removed with the claim.

They are named by namespace and claim, so that a claim that is made again in a later life of the cluster, whose objects
are forgotten with it, finds its data.
"""

import asyncio
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.resources import PERSISTENT_VOLUME_CLAIMS
from mxnet_operator.local.apiserver.store import PROTECTION
from mxnet_operator.local.kubelet.volumes import MountError
from mxnet_operator.local.waiting import Changes, Timing
from mxnet_operator.readers.pods import ENDED
from mxnet_operator.readers.volumes import claims_needed

Object = dict[str, Any]

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode

_log = logging.getLogger(__name__)


class VolumeClaims:
    """Provisioner of the claims of one node; `run` removes what belongs to deleted claims.

    `pods` returns all pods; `changes` rings when a pod changes, and is rung when a claim does.
    """

    def __init__(
        self,
        client: Client,
        folder: Path,
        pods: Callable[[], Iterable[Object]],
        changes: Changes,
        timing: Timing,
    ) -> None:
        self._client = client
        self._folder = folder
        self._pods = pods
        self._changes = changes
        self._timing = timing
        self._cache: Indexer[Object] = Indexer({})
        self._reflector = Reflector(client, PERSISTENT_VOLUME_CLAIMS, self._cache, _decode, self._changed)
        self._removed: set[str] = set()

    async def folders_of(self, pod: Mapping[str, Any]) -> dict[str, Path]:
        """Return the folders of the claims of a pod's volumes, by the claims' names.

        Raises:
            MountError: there is no such claim, or none that can be had.
            KubeError: a request fails.
            OSError: the file system reports an error.
        """
        namespace = pod["metadata"]["namespace"]
        return {name: await self._folder_of(namespace, name) for name in sorted(claims_needed(pod["spec"]))}

    async def _folder_of(self, namespace: str, name: str) -> Path:
        """Return the folder of a claim, which is made and the claim bound to it if it isn't yet."""
        path = PERSISTENT_VOLUME_CLAIMS.path(namespace, name)
        claim = await self._client.find(path)
        if claim is None or (why := _why_unusable(name, claim)):
            raise MountError(why)
        folder = self._folder / namespace / name
        await asyncio.to_thread(folder.mkdir, 0o700, parents=True, exist_ok=True)
        if claim.get("status", {}).get("phase") != "Bound":
            spec, uid = claim["spec"], claim["metadata"]["uid"]
            if not spec.get("volumeName"):
                await self._client.patch(path, {"metadata": {"uid": uid}, "spec": {"volumeName": f"pvc-{uid}"}})
            capacity = {"storage": spec["resources"]["requests"]["storage"]}
            status = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": capacity}
            await self._client.patch(f"{path}/status", {"metadata": {"uid": uid}, "status": status})
        return folder

    def why_unusable(self, pod: Object) -> str:
        """Return why a claim of a pod's volumes can't be had, in kube-scheduler's words; empty if all can.

        It goes by what the watch last showed; before that has shown anything, nothing is said.
        """
        if not self._reflector.synced.is_set():
            return ""
        namespace = pod["metadata"]["namespace"]
        claims = ((name, self._cache.get(f"{namespace}/{name}")) for name in sorted(claims_needed(pod["spec"])))
        return next((why for name, claim in claims if (why := _why_unusable(name, claim))), "")

    async def run(self) -> None:
        """Remove the folders of deleted claims, each once no pod uses it, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reflector.run())
            tasks.create_task(self._remove_deleted())

    async def _remove_deleted(self) -> None:
        while True:
            if not (due := [claim for claim in self._cache.values() if self._is_due(claim)]):
                await self._changes.wait()
            for claim in due:
                try:
                    await self._remove(claim)
                except (KubeError, OSError) as error:
                    _log.warning("the volume of claim %s can't be removed: %s", claim["metadata"]["name"], error)
                    await asyncio.sleep(self._timing.setup_retry)

    async def _remove(self, claim: Object) -> None:
        """Remove what a claim has stored, then let the claim go."""
        metadata = claim["metadata"]
        folder = self._folder / metadata["namespace"] / metadata["name"]
        if folder.exists():
            await asyncio.to_thread(shutil.rmtree, folder)
        left = [each for each in metadata["finalizers"] if each != PROTECTION]
        change = {"metadata": {"uid": metadata["uid"], "finalizers": left or None}}
        try:
            await self._client.patch(PERSISTENT_VOLUME_CLAIMS.path(metadata["namespace"], metadata["name"]), change)
        except ApiError as error:
            if error.code != 404:
                raise
        self._removed.add(metadata["uid"])

    def _is_due(self, claim: Object) -> bool:
        metadata = claim["metadata"]
        if "deletionTimestamp" not in metadata or PROTECTION not in metadata.get("finalizers", ()):
            return False
        return metadata["uid"] not in self._removed and not self._is_used(metadata["namespace"], metadata["name"])

    def _is_used(self, namespace: str, name: str) -> bool:
        return any(
            name in claims_needed(pod["spec"])
            for pod in self._pods()
            if pod["metadata"]["namespace"] == namespace
            and pod["spec"].get("nodeName")
            and (pod.get("status") or {}).get("phase") not in ENDED
        )

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is None:
            self._removed.discard(old["metadata"]["uid"])
        self._changes.notify()


def _why_unusable(name: str, claim: Object | None) -> str:
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if "deletionTimestamp" in claim["metadata"]:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if claim["spec"].get("volumeMode") == "Block":
        return f'persistentvolumeclaim "{name}": the local cluster doesn\'t support volumeMode Block'
    return ""
