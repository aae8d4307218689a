"""What the local cluster keeps on disk and no unfinished job needs, for `mxjob local prune` and `local status`."""

import asyncio
import contextlib
import itertools
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.filesize import decimal

from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.cli.server.connection import Target, connect
from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.client.jobs import in_v1_words, pods_of, until_gone
from mxnet_operator.client.stored_jobs import stored_jobs
from mxnet_operator.kube.resources import PODS
from mxnet_operator.local.home import ClusterFiles, running_state
from mxnet_operator.local.images.store import ImageStore, normalised
from mxnet_operator.local.images.uv_process import ImageError
from mxnet_operator.readers.enumeration import first_names
from mxnet_operator.readers.pods import ENDED

_SHOWN: Final = 5


@dataclass(frozen=True)
class Use:
    """Jobs of a running cluster: those that have ended, and what the others and their pods need."""

    ended: tuple[dict[str, Any], ...] = ()
    pods: tuple[dict[str, Any], ...] = ()
    images: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Leftovers:
    jobs: tuple[dict[str, Any], ...]
    """Jobs that have ended."""
    of_jobs: tuple[Path, ...]
    """Folders of their pods, which go with them."""
    pods: tuple[Path, ...]
    """Folders of pods that the cluster no longer has."""
    snapshots: tuple[Path, ...]
    environments: tuple[Path, ...]

    def lines(self) -> list[str]:
        names = first_names([job["metadata"]["name"] for job in self.jobs], _SHOWN)
        found = (
            (len(self.jobs), f"ended jobs with their logs and files: {names}", self.of_jobs),
            (len(self.pods), "folders of pods of deleted jobs and earlier clusters", self.pods),
            (len(self.snapshots), "copies of scripts' folders", self.snapshots),
            (len(self.environments), "Python environments, built again when a job needs them", self.environments),
        )
        return [f"{count} {what} ({decimal(disk_use(paths))})" for count, what, paths in found if count]

    def size(self) -> int:
        return disk_use((*self.of_jobs, *self.pods, *self.snapshots, *self.environments))


def use_of(files: ClusterFiles) -> Use:
    """Read what the jobs of the cluster need; nothing where none runs.

    Raises:
        CommandError: it can't be asked.
    """
    return asyncio.run(_use_of(files)) if running_state(files) is not None else Use()


async def _use_of(files: ClusterFiles) -> Use:
    async with connect(Target(kubeconfig=str(files.kubeconfig))) as client:
        stored, pods = await asyncio.gather(stored_jobs(client, None, {}), client.list(PODS.path()))
    jobs = [in_v1_words(job) for job in stored]
    ended = tuple(job for job in jobs if job_state(job) in TERMINAL)
    unfinished = [job for job in jobs if job_state(job) not in TERMINAL]
    specs = [
        *(each["template"]["spec"] for job in unfinished for each in job["spec"]["mxReplicaSpecs"].values()),
        *(pod["spec"] for pod in pods["items"] if (pod.get("status") or {}).get("phase") not in ENDED),
    ]
    containers = (each for spec in specs for each in (*spec["containers"], *(spec.get("initContainers") or ())))
    images = set()
    for each in containers:
        with contextlib.suppress(ImageError):  # no image has such a name
            images.add(normalised(each.get("image", "")))
    return Use(ended, tuple(pods["items"]), frozenset(images))


def leftovers(files: ClusterFiles, store: ImageStore, use: Use) -> Leftovers:
    """Find what no unfinished job needs."""
    uids = {pod["metadata"]["uid"] for pod in use.pods}
    of_jobs = [files.pods / pod["metadata"]["uid"] for job in use.ended for pod in pods_of(job, use.pods)]
    folders = sorted(files.pods.iterdir()) if files.pods.is_dir() else []
    known = {*uids, files.claims.name}
    return Leftovers(
        use.ended,
        tuple(folder for folder in of_jobs if folder.is_dir()),
        tuple(folder for folder in folders if folder.is_dir() and folder.name not in known),
        tuple(store.unused_snapshots(use.images)),
        tuple(store.unused_environments(use.images)),
    )


def delete(files: ClusterFiles, store: ImageStore, found: Leftovers) -> None:
    """Delete what was found.

    Raises:
        CommandError: the cluster rejects the deletion of a job.
    """
    if found.jobs:
        asyncio.run(_delete_jobs(files, found.jobs))
    store.drop_snapshots(found.snapshots)
    store.drop_environments(found.environments)
    for folder in (*found.pods, *found.of_jobs):
        shutil.rmtree(folder, ignore_errors=True)


async def _delete_jobs(files: ClusterFiles, jobs: Iterable[dict[str, Any]]) -> None:
    async with connect(Target(kubeconfig=str(files.kubeconfig))) as client:
        for job in jobs:
            await JobClient(client).delete_job(JobRef.of(job))
        for job in jobs:
            await until_gone(client, job)


def disk_use(paths: Iterable[Path], *, shared: bool = False) -> int:
    """Return the bytes on disk of folders: of the files that uv's cache has too if `shared`, else of all others."""
    total = 0
    for folder, _, names in itertools.chain.from_iterable(map(os.walk, paths)):
        for name in names:
            with contextlib.suppress(OSError):
                found = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - a third of the time
                total += found.st_blocks * 512 if (found.st_nlink > 1) is shared else 0
    return total


def home_use(files: ClusterFiles) -> dict[str, int]:
    home = files.root.parent
    images, claims = home / "images", disk_use([files.claims])
    return {
        "images": disk_use([images]),
        "snapshots": disk_use([home / "snapshots"]),
        "pods": disk_use([files.pods]) - claims,
        "claims": claims,
        "sharedWithUv": disk_use([images], shared=True),
    }
