"""Locked requirements of an image: Python version, packages, and the hash of each file."""

import hashlib
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from mxnet_operator.api.manifest_text import ManifestError, decoded
from mxnet_operator.local.images.uv_process import ImageError

_PYTHON = re.compile(r"#\s*python:\s*(\d+\.\d+(?:\.\d+)?)\s*$")
_DAY = re.compile(r"#\s*as of:\s*(\d{4}-\d\d-\d\d)\s*$")
_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*==\s*(?P<version>[^\s;\\]+)")
# Options that change where packages come from are the user's business; those that name other files would hide
# part of the lock from its own hash.
_REFUSED_OPTION = re.compile(r"-(?:r|c|e|-requirement|-constraint|-editable)\b")


@dataclass(frozen=True, slots=True)
class Lock:
    """Requirements file with exact versions and hashes.

    `pins` maps the name of each distribution, in lower case, to its version; `day` is the one that it was resolved as
    of, which what builds its packages keeps to.
    """

    text: str
    python: str
    pins: dict[str, str]
    day: date | None = None

    @property
    def key(self) -> str:
        """Name of the environment built from this lock; equal locks share one."""
        return hashlib.sha256(f"{self.text}\0{self.python}".encode()).hexdigest()[:16]


def is_lock(text: str) -> bool:
    """Whether a requirements file is meant as a lock: it names its Python, or has hashes."""
    return "--hash=" in text or any(_PYTHON.match(line) for line in _head(text))


def how_to_lock(file: str, python: str = "3.11") -> str:
    """Format the commands that make a lock of a requirements file."""
    return (
        f"Write one with `(echo '# python: {python}'; uv pip compile --generate-hashes --no-header --quiet "
        f"--python-version {python} requirements.in) > {file}`, where requirements.in lists what the image needs."
    )


def parse_lock(text: str, source: str) -> Lock:
    """Read a locked requirements file; `source` names it in errors.

    Raises:
        ImageError: there is no `# python: X.Y` line at its head, or a requirement lacks its exact version or hash.
    """
    python = next((match[1] for line in _head(text) if (match := _PYTHON.match(line))), None)
    if python is None:
        raise ImageError(
            f"{source} doesn't say which Python the image runs on: its first line must be `# python: 3.11` or the "
            f"like. {how_to_lock(source)}"
        )
    pins: dict[str, str] = {}
    for line in _logical_lines(text):
        if _REFUSED_OPTION.match(line):
            raise ImageError(
                f"{source}: {line.split()[0]} isn't allowed in a lock: everything must stand in the one file"
            )
        if line.startswith("-"):
            continue
        match = _PIN.match(line)
        if match is None or "--hash=" not in line:
            lacks = "an exact version (==)" if match is None else "a hash"
            raise ImageError(
                f"{source} isn't a lock: `{line.split(' --')[0][:80]}` lacks {lacks}. {how_to_lock(source)}"
            )
        pins[match["name"].lower()] = match["version"]
    if not pins:
        raise ImageError(f"{source} lists no packages. {how_to_lock(source)}")
    day = next((match[1] for line in _head(text) if (match := _DAY.match(line))), None)
    return Lock(text, python, pins, date.fromisoformat(day) if day else None)


def read_lock(path: Path) -> Lock:
    """Read a locked requirements file from a path, as `parse_lock` does.

    Raises:
        ImageError: it can't be read, or isn't a lock.
    """
    try:
        return parse_lock(read_requirements(path), str(path))
    except FileNotFoundError as error:
        raise ImageError(f"{path} can't be read: {error}") from error


def read_requirements(path: Path) -> str:
    """Read a requirements file as pip does: UTF-8, or what a byte order mark says, as editors of Windows write it.

    Raises:
        FileNotFoundError: there is none.
        ImageError: it can't be read.
    """
    try:
        return decoded(path.read_bytes()).replace("\r\n", "\n")
    except FileNotFoundError:
        raise
    except (OSError, ManifestError) as error:
        raise ImageError(f"{path} can't be read: {error}") from error


def _head(text: str) -> list[str]:
    lines = text.splitlines()
    end = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    return lines[:end]


def _logical_lines(text: str) -> list[str]:
    joined = re.sub(r"\\\n", " ", text.replace("\r\n", "\n"))
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined.split("\n"))
    return [" ".join(line.split()) for line in lines if line]
