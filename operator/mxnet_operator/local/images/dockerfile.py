"""Working directory and default command of an image, from the Dockerfile in its folder."""

import json
import posixpath
import re
from dataclasses import dataclass, replace
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
