"""State of the local cluster, running or not, and what it keeps on disk, for `mxjob local status` and `local prune`."""

import asyncio
import contextlib
import itertools
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.filesize import decimal

from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.server.connection import Target, connect
from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.client.jobs import in_v1_words, pods_of, until_gone
from mxnet_operator.client.stored_jobs import stored_jobs
from mxnet_operator.dashboard.server import page_template
from mxnet_operator.kube.resources import NODES, PODS
from mxnet_operator.local.claims import lock_holder
from mxnet_operator.local.home import ClusterFiles, ClusterState, last_state, process_use, running_state
from mxnet_operator.local.images.store import ImageStore, normalised
from mxnet_operator.local.images.uv_process import ImageError
from mxnet_operator.local.kubelet.processes import left_over
from mxnet_operator.readers.durations import short
from mxnet_operator.readers.enumeration import first_names
from mxnet_operator.readers.pods import ENDED

_SHOWN: Final = 5
_SHOWN_FIRST: Final = ("cpu", "memory")
_START: Final = "mxjob local up --detach"


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


def collect(files: ClusterFiles, state: ClusterState) -> dict[str, Any]:
    """Collect the state of a running cluster, for `--json`.

    Raises:
        CommandError: its API server doesn't answer.
    """
    try:
        node, jobs = asyncio.run(_ask(files))
        use = process_use(state.pid)
    except OSError as error:
        raise CommandError("the local cluster has just stopped") from error
    return {
        "state": "Running",
        "pid": state.pid,
        "uptimeSeconds": round(max(0.0, time.time() - state.started_at), 1),
        "server": state.server,
        "dashboard": state.dashboard,
        "jobPages": page_template(state.pages_port),
        "kubeconfig": str(files.kubeconfig),
        "log": str(files.log),
        "subnet": f"{state.subnet}.0.0/16",
        "capacity": {
            name: node[name] for name in (*_SHOWN_FIRST, *sorted(node.keys() - {*_SHOWN_FIRST})) if name in node
        },
        "jobs": dict(sorted(jobs.items())),
        "residentBytes": use.resident_bytes,
        "cpuSeconds": round(use.cpu_seconds, 2),
        "diskBytes": home_use(files),
    }


def rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "state", f"{found['state']} for {short(found['uptimeSeconds'])} (pid {found['pid']})"
    yield "API", found["server"]
    yield "kubeconfig", found["kubeconfig"]
    yield "dashboard", found["dashboard"]
    yield "node", ", ".join(f"{name} {amount}" for name, amount in found["capacity"].items())
    yield "jobs", ", ".join(f"{count} {state}" for state, count in found["jobs"].items()) or "none"
    yield "memory", f"{found['residentBytes'] / 2**20:.0f} MiB"
    yield "CPU", f"{found['cpuSeconds']:.1f} s"
    yield "disk", disk_text(found["diskBytes"])


def disk_text(parts: dict[str, int]) -> str:
    """Format what a home takes on disk: `1.2 GB (images 0.9 GB, ...)`, with the command that frees some of it."""
    own = {name: size for name, size in parts.items() if name != "sharedWithUv"}
    named = ", ".join(f"{name} {decimal(size)}" for name, size in own.items() if size)
    shared = f", and {decimal(parts['sharedWithUv'])} shared with uv's cache" if parts["sharedWithUv"] else ""
    return f"{decimal(sum(own.values()))} ({named}){shared}; mxjob local prune deletes what no unfinished job needs"


def not_running(files: ClusterFiles) -> dict[str, Any]:
    """Describe a cluster that is not ready, for `--json`: starting, stopping, or stopped with leftover processes."""
    pid = lock_holder(files.lock)
    if pid is not None:
        last = last_state(files)
        stopping = last is not None and last.stopping and last.pid == pid
        return {"state": "Stopping" if stopping else "Starting", "pid": pid}
    return {"state": "Stopped", "pid": None, "leftOver": left_over(files.pods), "diskBytes": home_use(files)}


def not_running_lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield lines that describe what `not_running` found."""
    if found["state"] != "Stopped":
        yield f"the local cluster is {found['state'].lower()} (pid {found['pid']})"
        return
    yield f"the local cluster is not running; start it with: {_START}"
    if any(found["diskBytes"].values()):
        yield f"disk: {disk_text(found['diskBytes'])}"
    if pids := found["leftOver"]:
        shown = first_names(list(map(str, pids)), 2 * _SHOWN)
        yield f"{len(pids)} processes of its jobs still run (pid {shown}): the cluster and its reaper were killed"
        yield f"stop them with: {_START}"


async def _ask(files: ClusterFiles) -> tuple[dict[str, str], Counter[str]]:
    async with connect(Target(kubeconfig=str(files.kubeconfig))) as client:
        nodes, jobs = await asyncio.gather(client.list(NODES.path()), stored_jobs(client, None, {}))
        capacity: dict[str, str] = nodes["items"][0]["status"]["capacity"] if nodes["items"] else {}
        return capacity, Counter(job_state(in_v1_words(job)) or "new" for job in jobs)
