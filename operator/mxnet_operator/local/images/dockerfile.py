"""How an image is run, as the Dockerfile in its folder says: where its files lie, and what runs without a command."""

import json
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

_CONTINUED = re.compile(r"\\[ \t]*\n")
_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*?)\s*")


@dataclass(frozen=True, slots=True)
class Start:
    """What of a Dockerfile counts on the local cluster; empty where it doesn't say.

    `folder` is an absolute path (WORKDIR). A container's `command` replaces `entrypoint` and `command`, its `args` the
    latter, as in Kubernetes.
    """

    folder: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def read_start(folder: Path) -> Start:
    """WORKDIR, ENTRYPOINT and CMD of the last stage of the folder's Dockerfile; variables in them aren't replaced.

    All else in it is for a container engine. No Dockerfile, or one that can't be read: nothing is said.
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
    """The JSON form is what it says, any other text is for the shell."""
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return tuple(words)
    return ("/bin/sh", "-c", text)
