"""`mxjob cp`: copy what a replica of a job wrote."""

import asyncio
import contextlib
import os
import posixpath
import re
import shlex
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, NamedTuple

import typer

from mxnet_operator.api import names
from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.daemons.home import usable_files
from mxnet_operator.cli.errors import CommandError, Exit, UsageError
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.cli.running.cluster_files import copy_from_cluster
from mxnet_operator.cli.running.local_files import container_paths, copy, copy_files, exists, is_local
from mxnet_operator.cli.server.connection import Client, Target, connect, uses_local
from mxnet_operator.cli.server.job_kinds import get_job, replica_of
from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.client.jobs import pod_name
from mxnet_operator.client.training import compare_workers
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.local.kubelet.pod_files import ContainerPaths, Written, newest_paths
from mxnet_operator.readers.training_log import TrainingLog

EXAMPLES = """
[bold]Examples[/]

  mxjob cp digits:model-0005.params .

  mxjob cp digits/worker-1:checkpoints ./checkpoints

  mxjob cp digits/worker-1 ./new-files

[bold]Exit codes[/]  0 copied · 1 no such job or file, or the destination exists · 2 usage ·
3 API server unreachable, or rejects it
"""

_SOURCE: Final = re.compile(r"(?P<job>[^/:]+)(?:/(?P<replica>[^/:]+))?(?::(?P<path>.+))?", re.DOTALL)
_MOST_NAMES: Final = 10
_MAIN: Final = ("worker-0", "tuner-0")
"""The replica that is meant where none is named, which a job that is gone can't tell."""


class _Source(NamedTuple):
    job: str
    replica: str | None
    path: str
    """Empty for all new files."""


@asks_server
async def cp(
    target: Target,
    *,
    source: Annotated[
        str,
        typer.Argument(
            metavar="JOB[/REPLICA][:PATH]",
            help="File or folder of a replica: by default, on the local cluster, of the one that wrote it, of several "
            "of rank 0; else of worker-0 or tuner-0. A relative path starts in the replica's working directory. "
            "Without a path, on the local cluster: all new files there.",
        ),
    ],
    destination: Annotated[Path, typer.Argument(metavar="DESTINATION", help="Folder to copy into, or a new name.")],
) -> Exit:
    """Copy a file or folder that a replica wrote.

    On the local cluster its job may run or have finished: files exist until the job or its pod is deleted, or for seven
    days after the cluster has stopped. On another cluster it must run, or have written the file to a
    PersistentVolumeClaim, which a pod of a minute then reads; both need `tar` in the image and the right to create
    pods/exec, the latter also to create pods.
    Nothing is overwritten: a destination that exists is an error.
    """
    wanted = _parsed(source)
    async with contextlib.AsyncExitStack() as held:
        try:
            client = await held.enter_async_context(connect(target))
            job = await get_job(client, target.namespace or client.namespace, wanted.job)
        except (CommandError, KubeError):
            if (left := _left_by_earlier_run(target, wanted)) is None:
                raise
            copied = await asyncio.to_thread(_copy_here, left[0], wanted, left[1], destination)
        else:
            copied = await _copied(client, job, wanted, destination)
    say(f"copied {copied}")
    return Exit.OK


async def _copied(client: Client, job: dict[str, Any], wanted: _Source, destination: Path) -> str:
    """Copy the file of a job that the server has; return what was copied where."""
    pods = await JobClient(client).replica_pods(JobRef.of(job))
    replica = replica_of(job, wanted.replica)
    if not is_local(client.server):
        if not wanted.path:
            raise CommandError("new files are known on the local cluster only", hint=f"name a path: {wanted.job}:PATH")
        final = _final(destination, PurePosixPath(posixpath.normpath(wanted.path)).name or replica)
        await copy_from_cluster(client, job, replica, wanted.path, final, pods=pods)
        return f"{replica}:{wanted.path} to {final}"
    paths = container_paths(job, pods)
    if wanted.replica is None and len(wrote := await asyncio.to_thread(_writers, paths, wanted.path)) > 1:
        replica = await _of_rank_0(client, job, wanted, wrote)
    elif wanted.replica is None and wrote:
        (replica,) = wrote
    if replica not in paths:
        has_pod = any(pod["metadata"]["name"] == pod_name(wanted.job, replica) for pod in pods)
        why = (
            "files on this machine: it has not started"
            if has_pod
            else ("pod: it has not started, or its pod and files were deleted")
        )
        raise CommandError(f"{replica} has no {why}")
    return await asyncio.to_thread(_copy_here, replica, wanted, paths, destination)


def _writers(paths: dict[str, ContainerPaths], path: str) -> list[str]:
    """Return the replicas that wrote a path, one of those that share the file; empty where it is only the image's."""
    found: dict[Path, str] = {}
    for replica, each in paths.items():
        real = each.real(path or ".")
        if real is None or not exists(real):
            continue
        work = Path(os.path.realpath(each.working_directory))
        real = Path(os.path.realpath(real))
        if not real.is_relative_to(work) or any((work / new).is_relative_to(real) for new in each.new_files()):
            found.setdefault(real, replica)
    return list(found.values())


async def _of_rank_0(client: Client, job: dict[str, Any], wanted: _Source, wrote: list[str]) -> str:
    """Return the one of several writers that has rank 0, as their logs tell."""
    logs = await compare_workers(client, job, TrainingLog())
    first = next((replica for replica, log in logs.items() if log.rank == 0 and replica in wrote), None)
    if first is None:
        path = f":{wanted.path}" if wanted.path else ""
        raise CommandError(
            f"{', '.join(wrote)} wrote {wanted.path or 'files'}, and no log tells which of them has rank 0",
            hint=f"name one: mxjob cp {shlex.quote(f'{wanted.job}/{wrote[0]}{path}')} DESTINATION",
        )
    others = ", ".join(each for each in wrote if each != first)
    say(f"{first} has rank 0; {others} wrote {wanted.path or 'files'} too")
    return first


def _copy_here(replica: str, wanted: _Source, paths: dict[str, ContainerPaths], destination: Path) -> str:
    """Copy a file, or all new files, of a replica on this machine; return what was copied where."""
    own = paths[replica]
    try:
        if wanted.path:
            real = own.real(wanted.path)
            if real is None or not exists(real):
                raise _no_file(replica, wanted.path, paths)
            final = _final(destination, Path(os.path.normpath(real)).name)
            copy(real, final, follow=True)
            return f"{replica}:{wanted.path} to {final}"
        new = Written(replica, Path(own.working_directory), own.new_files())
        if exists(destination):
            raise CommandError(f"{destination} exists, and nothing is overwritten", hint="name a new folder")
        if not new.files:
            raise CommandError(f"{replica} wrote no files into its working directory")
        copy_files(new, destination)
    except OSError as error:
        what = f"{replica}:{wanted.path}" if wanted.path else "the files"
        raise CommandError(f"{what} can't be copied to {destination}: {error.strerror or error}") from error
    return f"{len(new.files)} new files of {replica} to {destination}"


def _left_by_earlier_run(target: Target, wanted: _Source) -> tuple[str, dict[str, ContainerPaths]] | None:
    """Return the same of a job that an earlier run of the local cluster had."""
    if not uses_local(target):
        return None
    namespace = target.namespace or "default"
    for replica in [wanted.replica.lower()] if wanted.replica else _MAIN:
        with usable_files() as files:
            paths = newest_paths(files.pods, namespace, pod_name(wanted.job, replica), names.CONTAINER)
        if paths is not None:
            say(f"{wanted.job} is a job of an earlier run of the local cluster")
            return replica, {replica: paths}
    return None


def _parsed(text: str) -> _Source:
    match = _SOURCE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} is not JOB[/REPLICA][:PATH]",
            hint="such as digits:model-0005.params, digits/worker-1:model-0005.params or digits:.",
        )
    return _Source(match["job"], match["replica"], match["path"] or "")


def _no_file(replica: str, path: str, paths: dict[str, ContainerPaths]) -> CommandError:
    others = [other for other, each in paths.items() if (real := each.real(path)) is not None and exists(real)]
    if others:
        return CommandError(f"{replica} has no {path}", hint=f"{', '.join(others)} has it")
    folder = paths[replica].real(".")
    entries = sorted(folder.iterdir(), key=lambda each: each.lstat().st_mtime, reverse=True) if folder else []
    newest = ", ".join(each.name for each in entries[:_MOST_NAMES])
    return CommandError(f"{replica} has no {path}", hint=f"newest in its working directory: {newest}" if newest else "")


def _final(destination: Path, name: str) -> Path:
    """Return the path of the copy: in a folder that exists under its own name."""
    final = destination / name if destination.is_dir() else destination
    if exists(final):
        raise CommandError(f"{final} exists, and nothing is overwritten", hint="name another destination")
    return final
