"""Where the paths of a pod's container lie on this machine, kept in the pod's folder.

The folder stays until the pod is deleted. Where the cluster ends before, what the pod wrote into its working directory
stays for `KEPT_DAYS` more: jobs of a local cluster are in memory, and a model must not go with them.
"""

import os
import shlex
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import msgspec

from mxnet_operator.api import names
from mxnet_operator.client.jobs import pod_name, replicas
from mxnet_operator.readers.enumeration import first_names

KEPT_DAYS: Final = 7
"""Days for which files of a pod are kept that the API server no longer has."""
_FILE: Final = "paths.json"
_DAY_NS: Final = 24 * 3600 * 10**9
_MOST_NAMES: Final = 5


class ContainerPaths(msgspec.Struct, frozen=True):
    """Map from the paths of a container's last run to paths of this machine."""

    working_directory: str
    folders: dict[str, str]
    written_at: int
    """When the working directory had the image's files only, as Unix time in nanoseconds."""
    namespace: str = ""
    pod: str = ""
    """Name of the pod."""

    def new_files(self) -> list[str]:
        """List the files that the run wrote into its working directory, relative to it, without Python's caches."""
        work, found = Path(self.working_directory), []
        for folder, folders, files in os.walk(work):
            links = [each for each in folders if Path(folder, each).is_symlink()]
            for path in (Path(folder, each) for each in (*files, *links) if not each.endswith(".pyc")):
                status = path.lstat()
                # Copying can set the time of modification, not that of the change.
                if status.st_ctime_ns > self.written_at and (stat.S_ISREG(status.st_mode) or path.is_symlink()):
                    found.append(str(path.relative_to(work)))
        return sorted(found)

    def real(self, path: str) -> Path | None:
        """Return the real path of a container's path, relative ones from its working directory.

        None where an absolute path is neither in a volume nor in the image's own folder.
        """
        if not path.startswith("/"):
            return Path(self.working_directory) / path
        for inside in sorted(self.folders, key=len, reverse=True):
            if PurePosixPath(path).is_relative_to(inside):
                return Path(self.folders[inside]) / PurePosixPath(path).relative_to(inside)
        return None


def write_paths(pod: Mapping[str, Any], container: Path, working_directory: Path, folders: Mapping[str, Path]) -> None:
    """Write the map into the folder of a container of this pod."""
    paths = ContainerPaths(
        str(working_directory),
        {inside: str(real) for inside, real in folders.items()},
        time.time_ns(),
        pod["metadata"]["namespace"],
        pod["metadata"]["name"],
    )
    (container / _FILE).write_bytes(msgspec.json.encode(paths))


def newest_paths(pods: Path, namespace: str, pod: str, container: str) -> ContainerPaths | None:
    """Read the map of the container of the last pod of this name that wrote files, of this or an earlier cluster."""
    read = (_read(folder) for folder in pods.glob(f"*/containers/{container}"))
    found = [each for each in read if each and (each.namespace, each.pod) == (namespace, pod) and each.new_files()]
    return max(found, key=lambda each: each.written_at, default=None)


def outlives_cluster(folder: Path) -> bool:
    """Whether the folder of a pod that the API server no longer has is kept: it has new files of the last days."""
    oldest = time.time_ns() - KEPT_DAYS * _DAY_NS
    read = (_read(each) for each in folder.glob("containers/*"))
    return any(each.written_at > oldest and each.new_files() for each in read if each)


def _read(container: Path) -> ContainerPaths | None:
    try:
        return msgspec.json.decode((container / _FILE).read_bytes(), type=ContainerPaths)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


class Written(NamedTuple):
    """New files in the working directory of a replica."""

    replica: str
    folder: Path
    """The working directory, on this machine."""
    files: list[str]
    """Their paths, relative to it."""

    def __str__(self) -> str:
        return f"{self.replica} wrote {first_names(self.files, _MOST_NAMES)}"

    def copy_command(self, job: str) -> str:
        """Return the command that copies them, and nothing of the image."""
        tops = {each.partition("/")[0] for each in self.files}
        if len(tops) > 1:
            return f"mxjob cp {job}/{self.replica} {job}-{self.replica}"
        return f"mxjob cp {shlex.quote(f'{job}/{self.replica}:{tops.pop()}')} ."


def job_paths(pods_folder: Path, job: dict[str, Any], pods: Iterable[Mapping[str, Any]]) -> dict[str, ContainerPaths]:
    """Return the paths of each replica of a job whose pod has started on this machine, by replica."""
    uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}
    found = {}
    for replica in replicas(job):
        uid = uids.get(pod_name(job["metadata"]["name"], replica))
        if uid and (paths := _read(pods_folder / uid / "containers" / names.CONTAINER)):
            found[replica] = paths
    return found


def written(paths: Mapping[str, ContainerPaths]) -> list[Written]:
    """List the new files of each replica that has any. Blocks: call it in a thread."""
    return [
        Written(replica, Path(each.working_directory), new)
        for replica, each in paths.items()
        if (new := each.new_files())
    ]
