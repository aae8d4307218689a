"""Copy of an image's folder into a container's working directory."""

import os
import shutil
import stat
from pathlib import Path

from mxnet_operator.local.images.errors import ImageError

IGNORED = frozenset({".git", "__pycache__", ".venv", "node_modules", "checkpoints"})
LIMIT_BYTES = 256 * 2**20


def copy_folder(source: Path, destination: Path) -> None:
    """Copy the files of `source` into `destination`, which may exist; links stay links.

    Sockets, devices and folders named in `IGNORED` are left out. Blocks: call it in a
    thread.

    Raises:
        ImageError: the folder has gone, holds more than `LIMIT_BYTES`, or can't be copied.
    """
    if not source.is_dir():
        raise ImageError(f"The image's folder {source} no longer exists; add the image again with its new folder.")
    size = _size(source)
    if size > LIMIT_BYTES:
        raise ImageError(
            f"The image's folder {source} holds {size / 2**20:.0f} MiB; at most {LIMIT_BYTES // 2**20} MiB "
            "are copied for each container. Move data elsewhere and give its path to the script. (Not counted: "
            f"{', '.join(sorted(IGNORED))}.)"
        )
    try:
        shutil.copytree(source, destination, symlinks=True, ignore=_left_out, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise ImageError(f"The image's folder {source} can't be copied to {destination}: {error}") from error


def _left_out(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in IGNORED or not _copyable(Path(folder, name))}


def _copyable(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _size(source: Path) -> int:
    total = 0
    for folder, folders, files in os.walk(source):
        folders[:] = [name for name in folders if name not in IGNORED]
        for name in files:
            total += Path(folder, name).lstat().st_size
            if total > 2 * LIMIT_BYTES:  # large enough to say so; a whole data set needn't be walked
                return total
    return total
