"""An image's folder: its copy into a container's working directory, and what its Dockerfile says about the start."""

import json
import os
import posixpath
import re
import shutil
import stat
from collections.abc import Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mxnet_operator.local.images.uv_process import ImageError

IGNORED = frozenset({".git", "__pycache__", ".venv", "node_modules", "checkpoints"})
LIMIT_BYTES = 256 * 2**20


def copy_folder(source: Path, destination: Path, *, ignored: Set[str] = IGNORED) -> None:
    """Copy the files of `source` into `destination`, which may exist; links stay links.

    Sockets, devices and what has a name in `ignored` are left out. Blocks: call it in a thread.

    Raises:
        ImageError: the folder has gone, holds more than `LIMIT_BYTES`, or can't be copied.
    """
    if not source.is_dir():
        raise ImageError(f"The image's folder {source} no longer exists; add the image again with its new folder.")
    size = _size(source, ignored)
    if size > LIMIT_BYTES:
        raise ImageError(
            f"The image's folder {source} holds {size / 2**20:.0f} MiB; at most {LIMIT_BYTES // 2**20} MiB "
            "are copied for each container. Move data elsewhere and give its path to the script. (Not counted: "
            f"{', '.join(sorted(ignored)) or 'nothing'}.)"
        )
    try:
        shutil.copytree(source, destination, symlinks=True, ignore=partial(_left_out, ignored), dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise ImageError(f"The image's folder {source} can't be copied to {destination}: {error}") from error


def _left_out(ignored: Set[str], folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name in ignored or not _copyable(Path(folder, name))}


def _copyable(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _size(source: Path, ignored: Set[str]) -> int:
    total = 0
    for folder, folders, files in os.walk(source):
        folders[:] = [name for name in folders if name not in ignored]
        for name in files:
            total += Path(folder, name).lstat().st_size
            if total > 2 * LIMIT_BYTES:  # large enough to say so; a whole data set needn't be walked
                return total
    return total


_CONTINUED = re.compile(r"\\[ \t]*\n")
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*?)\s*")


@dataclass(frozen=True, slots=True)
class Start:
    """WORKDIR, ENTRYPOINT and CMD of a Dockerfile; empty where it has none.

    `folder` is an absolute path (WORKDIR). A container's `command` replaces `entrypoint` and `command`, its `args` the
    latter, as in Kubernetes.
    """

    folder: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def read_start(folder: Path) -> Start:
    """Read WORKDIR, ENTRYPOINT and CMD of the last stage of the folder's Dockerfile, without replacing variables.

    Other instructions are ignored. All are empty if there is no Dockerfile, or it can't be read.
    """
    try:
        text = (folder / "Dockerfile").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return Start()
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    stages: dict[str, Start] = {}
    start, name, has_command = Start(), "", False
    for line in _CONTINUED.sub(" ", lines).splitlines():
        if not (match := _INSTRUCTION.fullmatch(line)):
            continue
        instruction, rest = match[1].upper(), match[2]
        if instruction == "FROM":
            stages[name] = start
            image, name = _image_and_name(rest)
            start, has_command = stages.get(image, Start()), False
        elif instruction == "WORKDIR":
            start = replace(start, folder=posixpath.normpath(posixpath.join(start.folder or "/", rest)))
        elif instruction == "ENTRYPOINT":  # a command that comes from another stage was not meant for it
            start = replace(start, entrypoint=_words(rest), command=start.command if has_command else ())
        elif instruction == "CMD":
            start, has_command = replace(start, command=_words(rest)), True
    return start


def _image_and_name(rest: str) -> tuple[str, str]:
    """Split what FROM says into the image, or the stage, that it builds on and the stage's own name, if it has one."""
    words = [word.lower() for word in rest.split() if not word.startswith("--")]
    return "".join(words[:1]), words[2] if words[1:2] == ["as"] and len(words) > 2 else ""


def _words(text: str) -> tuple[str, ...]:
    """Parse the exec form (JSON) of a command, or wrap the shell form in a shell."""
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return tuple(words)
    return ("/bin/sh", "-c", text)
