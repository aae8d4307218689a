"""Packages added to those of a base image: plain requirements, resolved by uv into one lock with the base's pins."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mxnet_operator.local.images.environment import find_interpreter
from mxnet_operator.local.images.lock import Lock, is_lock, parse_lock, read_lock, read_requirements
from mxnet_operator.local.images.uv_process import BuildError, Ended, ImageError, build_error, run, uv_program

_PINNED: Final = re.compile(r"\b([A-Za-z0-9][A-Za-z0-9._-]*)==(\d[^\s,;]*?)(?=[.,]?(?:\s|$))")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MXNET: Final = re.compile(r"mxnet(?![\w.-])", re.IGNORECASE)
_OTHER_MXNET: Final = re.compile(r"mxnet[-_.](mkl|native|cu\d+(mkl)?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requirement lines as in a requirements.txt, each with the place that it comes from for messages."""

    lines: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str], source: str) -> "Requirements":
        """Read requirement lines.

        Raises:
            ImageError: a line is an option, a path or a URL, or another build of MXNet.
        """
        found = []
        for text in texts:
            line = re.sub(r"(^|\s)#.*$", "", text).strip()
            if line:
                _check(line, source)
                found.append((line, source))
        return cls(tuple(found))

    def __add__(self, other: "Requirements") -> "Requirements":
        return Requirements(self.lines + other.lines)


def read_plain(path: Path) -> Requirements | None:
    """Read a requirements.txt that is no lock; None where there is none, or it is a lock.

    Raises:
        ImageError: it can't be read, or has a line that can't be added to an image.
    """
    try:
        text = read_requirements(path)
    except FileNotFoundError:
        return None
    return None if is_lock(text) else Requirements.parse(text.replace("\\\n", " ").splitlines(), str(path))


@dataclass(frozen=True, slots=True)
class Addition:
    """Requirements on top of the lock of the image `base`; `cache` keeps the result by its content."""

    base: str
    lock: Lock
    requirements: Requirements
    cache: Path

    @property
    def _input(self) -> str:
        pins = [f"{name}=={version}" for name, version in self.lock.pins.items()]
        # `mxnet` is fulfilled by the image's MXNet for GPUs, beside which it would be installed over its files.
        asked = [line for line, _ in self.requirements.lines if "mxnet" in self.lock.pins or not _MXNET.match(line)]
        return "\n".join([*pins, *asked, ""])

    @property
    def _file(self) -> Path:
        key = hashlib.sha256(f"{self.lock.text}\0{self._input}".encode()).hexdigest()[:16]
        return self.cache / f"{key}.txt"

    def resolved(self) -> Lock | None:
        """Return the lock, if it was made before; the base's where nothing is added."""
        if not self.requirements.lines:
            return self.lock
        return read_lock(self._file) if self._file.exists() else None

    async def resolve(self) -> Lock:
        """Return the lock; make it with uv unless it was made before.

        Raises:
            BuildError: the requirements contradict the base's pins, or can't be had for its Python.
            ImageError: they can't be resolved now.
        """
        if (known := self.resolved()) is not None:
            return known
        try:
            self.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._file.with_suffix(f".{os.getpid()}.tmp")
            asked, made = draft.with_suffix(".in"), draft.with_suffix(".out")
            asked.write_text(self._input, "utf-8")
            try:
                interpreter = await find_interpreter(self.lock.python, self.cache)
                command: list[str | Path] = [
                    *(uv_program(), "pip", "compile", "--no-progress", "--no-header", "--no-annotate", "--quiet"),
                    *("--generate-hashes", "--python", interpreter, "--output-file", made, asked),
                ]
                ended = await run(command, cwd=self.cache)
                if ended.code != 0:
                    raise self._error(ended)
                text = f"# python: {self.lock.python}\n{made.read_text('utf-8')}"
                lock = parse_lock(text, "the resolved requirements")
                draft.write_text(text, "utf-8")
                draft.replace(self._file)
                return lock
            finally:
                for each in (asked, made, draft):
                    each.unlink(missing_ok=True)
        except OSError as error:
            raise ImageError(f"The requirements can't be resolved in {self.cache}: {error}") from error

    def _error(self, ended: Ended) -> ImageError:
        asked = ", ".join(line for line, _ in self.requirements.lines)
        text = " ".join(" ".join(ended.lines).split())
        pins = {name.lower(): version for name, version in _PINNED.findall(text)}
        causes = [f"{name} {version}" for name, version in pins.items() if self.lock.pins.get(name) == version]
        if "No solution found" not in text or "network was disabled" in text:
            return build_error(f"The packages can't be added to {self.base} ({asked})", ended, self.cache.parent)
        shown = "\n".join(f"    {line}" for line in ended.lines if line.strip())
        cause = f"{self.base} needs {' and '.join(causes)}" if causes else f"{self.base} runs Python {self.lock.python}"
        sources = " and ".join(dict.fromkeys(source for _, source in self.requirements.lines))
        return BuildError(
            f"These packages can't be added to {self.base} ({asked}):\n{shown}\n"
            f"{cause}{self._reason(causes)}: ask for versions that fit in {sources}, or for any: the name alone."
        )

    def _reason(self, causes: Sequence[str]) -> str:
        has_mxnet = any(name.startswith("mxnet") for name in self.lock.pins)
        is_numpy = any(each.startswith("numpy ") for each in causes)
        return ", the newest that MXNet 1.9.1 can be imported with" if has_mxnet and is_numpy else ""


def _check(line: str, source: str) -> None:
    """Reject a line that names no package of an index, or would overwrite the image's MXNet."""
    if line.startswith("-"):
        raise ImageError(
            f"{source}: `{line}` is an option, which can't be added to an image: list the packages themselves. An index"
            " of your own is set with UV_DEFAULT_INDEX or UV_INDEX."
        )
    name = _NAME.match(line)
    if name is None or "://" in line or line.startswith(("/", "./", "../")) or line.endswith((".whl", ".tar.gz")):
        raise ImageError(
            f"{source}: `{line}` isn't a package of an index. Copy its source beside the script instead, or install it"
            " in an image of your own."
        )
    if _OTHER_MXNET.fullmatch(name[0]):
        raise ImageError(
            f"{source}: `{line}` is another build of MXNet, which the image has already: delete the line. The MXNet for"
            " GPUs is in the image mxjob/mxnet:1.9.1-cu112."
        )
