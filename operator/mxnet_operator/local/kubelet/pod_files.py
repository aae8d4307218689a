"""Where the paths of a pod's container lie on this machine, kept in the pod's folder until the pod is deleted."""

import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import msgspec

_FILE = "paths.json"


class ContainerPaths(msgspec.Struct, frozen=True):
    """Map from the paths of a container's last run to paths of this machine."""

    working_directory: str
    folders: dict[str, str]
    written_at: int
    """When the working directory had the image's files only, as Unix time in nanoseconds."""

    def new_files(self) -> list[str]:
        """List the files that the run wrote into its working directory, relative to it, without Python's caches."""
        work, found = Path(self.working_directory), []
        for folder, folders, files in os.walk(work):
            folders[:] = [each for each in folders if each != "__pycache__"]
            links = [each for each in folders if Path(folder, each).is_symlink()]
            for path in (Path(folder, each) for each in (*files, *links)):
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


def write_paths(container: Path, working_directory: Path, folders: Mapping[str, Path]) -> None:
    """Write the map into the folder of a container."""
    paths = ContainerPaths(
        str(working_directory), {inside: str(real) for inside, real in folders.items()}, time.time_ns()
    )
    (container / _FILE).write_bytes(msgspec.json.encode(paths))


def read_paths(pods: Path, uid: str, container: str) -> ContainerPaths | None:
    """Read the map of a pod's container; None where the pod did not run on this machine, or has not started.

    Args:
        pods: the kubelet's folder, with a folder per pod.
        uid: the pod's.
        container: its name.
    """
    try:
        content = (pods / uid / "containers" / container / _FILE).read_bytes()
    except FileNotFoundError:
        return None
    return msgspec.json.decode(content, type=ContainerPaths)
