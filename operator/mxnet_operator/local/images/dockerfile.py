"""Working directory and default command of an image, from the Dockerfile in its folder."""

import json
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

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
    start = Start()
    for line in _CONTINUED.sub(" ", lines).splitlines():
        if match := _INSTRUCTION.fullmatch(line):
            start = _after(start, match[1].upper(), match[2])
    return start


def _after(start: Start, instruction: str, rest: str) -> Start:
    match instruction:
        case "FROM":
            return Start()
        case "WORKDIR":
            return Start(posixpath.normpath(posixpath.join(start.folder or "/", rest)), start.entrypoint, start.command)
        case "ENTRYPOINT":
            return Start(start.folder, _words(rest), ())
        case "CMD":
            return Start(start.folder, start.entrypoint, _words(rest))
    return start


def _words(text: str) -> tuple[str, ...]:
    """Parse the exec form (JSON) of a command, or wrap the shell form in a shell."""
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return tuple(words)
    return ("/bin/sh", "-c", text)
