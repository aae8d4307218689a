"""What only the local cluster knows of a job, for its page: files in working directories, versions in images."""

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mxnet_operator.local.images.store import ImageStore
from mxnet_operator.local.images.uv_process import ImageError
from mxnet_operator.local.kubelet.pod_files import job_paths, written


class LocalJobFiles:
    """Reader of the files of the local cluster's pods, in the kubelet's folder `pods`, and of its images."""

    def __init__(self, pods: Path, store: ImageStore) -> None:
        self._pods = pods
        self._store = store

    async def written(self, job: dict[str, Any], pods: Iterable[dict[str, Any]]) -> list[str]:
        """List what the replicas wrote into their working directories, a line each."""
        found = await asyncio.to_thread(lambda: written(job_paths(self._pods, job, pods)))
        return [str(each) for each in found]

    async def versions(self, images: Iterable[str]) -> dict[str, str]:
        found = {}
        for image in images:
            with contextlib.suppress(ImageError, OSError):
                found[image] = await asyncio.to_thread(self._store.versions, image)
        return found
