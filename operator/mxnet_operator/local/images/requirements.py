"""Packages added to those of a base image: plain requirements, resolved into one lock with what the base needs."""

import hashlib
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mxnet_operator.local.home import write_private
from mxnet_operator.local.images import python2
from mxnet_operator.local.images.day import ONLY_BINARY, UV_SETTINGS, DayImage, MXNetRequirement, day_options
from mxnet_operator.local.images.environment import find_interpreter
from mxnet_operator.local.images.lock import Lock, is_lock, parse_lock, read_lock, read_requirements
from mxnet_operator.local.images.uv_process import BuildError, Ended, ImageError, build_error, run, uv_program
from mxnet_operator.local.projects import PROJECTS

_PINNED: Final = re.compile(r"\b([A-Za-z0-9][A-Za-z0-9._-]*)==(\d[^\s,;]*?)(?=[.,]?(?:\s|$))")
_HIDDEN: Final = re.compile(
    r"`([\w.-]+)` was filtered by `exclude-newer`[^`]*?(?:published at (\d{4}-\d\d-\d\d)[^`]*)?Consider"
)
"""Hint of uv at a package that is only there after the day, and when its index says that."""
_PROJECTS: Final = {
    "opencv": PROJECTS["cv2"],
    **{module.lower(): PROJECTS[module] for module in ("cv2", "PIL", "skimage", "sklearn", "yaml")},
}
"""Projects whose modules are listed in their place; no project that works has these names."""
_MODULE: Final = re.compile(rf"^({'|'.join(_PROJECTS)})\b(?![-.])(?:\s*==\s*0\.0\b[\w.]*)?", re.IGNORECASE)
"""Such a module at the head of a line, with the version of a project that stands in for the real one."""
_OF_ITS_MACHINE: Final = re.compile(r"\s*@ file:\S+|^\s*pkg[-_]resources\s*==\s*0\.0\.0\s*$")
"""What `pip freeze` writes and no index has: folders of conda's packages, and a part of Debian's setuptools."""
_BUILT_IN: Final = sys.stdlib_module_names - frozenset(
    ("argparse", "configparser", "contextvars", "dataclasses", "enum", "ipaddress", "pathlib", "statistics", "typing")
)
"""Modules that every Python has, without those that the index has for older ones; requirements.txt often lists some."""
_NO_WHEEL: Final = re.compile(r"Because (\S+==\S+) has no usable wheels")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requirement lines as in a requirements.txt, each with the place that it comes from for messages."""

    lines: tuple[tuple[str, str], ...] = ()
    mxnet: MXNetRequirement | None = None
    """The first of them that is MXNet's: an image has one build of it, which is chosen and not added."""

    @classmethod
    def parse(cls, texts: Sequence[str], source: str) -> "Requirements":
        """Read requirement lines.

        Raises:
            ImageError: a line is an option, a path or a URL.
        """
        found = []
        mxnet = None
        for text in texts:
            line = _OF_ITS_MACHINE.sub("", re.sub(r"(^|\s)#.*$", "", text)).strip()
            if line and line not in _BUILT_IN:
                _check(line, source)
                line = _MODULE.sub(lambda named: _PROJECTS[named[1].lower()], line)
                own = MXNetRequirement.parse(line)
                mxnet = mxnet or own
                found += [] if own else [(line, source)]
        return cls(tuple(found), mxnet)

    def __add__(self, other: "Requirements") -> "Requirements":
        return Requirements(self.lines + other.lines, self.mxnet or other.mxnet)


def read_plain(path: Path, source: str = "") -> Requirements | None:
    """Read a requirements.txt that is no lock; None where there is none, or it is a lock. `source` names it.

    Raises:
        ImageError: it can't be read, or has a line that can't be added to an image.
    """
    try:
        text = read_requirements(path)
    except FileNotFoundError:
        return None
    return None if is_lock(text) else Requirements.parse(text.replace("\\\n", " ").splitlines(), source or str(path))


@dataclass(frozen=True, slots=True)
class Addition:
    """Requirements on top of the image `base`, a lock or an image of a day; `cache` keeps the result by its content."""

    base: str
    start: Lock | DayImage
    requirements: Requirements
    cache: Path
    has_mxnet: bool = True
    """Whether the MXNet of an image of a day is among its packages; else the requirements choose theirs."""

    @property
    def _input(self) -> str:
        if isinstance(self.start, DayImage):
            own = list(self.start.requirements[0 if self.has_mxnet else 1 :])
        else:
            own = [f"{name}=={version}" for name, version in self.start.pins.items()]
        if self.requirements.mxnet is not None and self._mxnet is None:
            own.append(self.requirements.mxnet.text)
        return "\n".join([*own, *(line for line, _ in self.requirements.lines), ""])

    @property
    def _mxnet(self) -> str | None:
        """Version of the base's MXNet, in whichever build; None where it has none."""
        pins = {"mxnet": self.start.mxnet} if isinstance(self.start, DayImage) else self.start.pins
        return next((pins[each] for each in pins if each.startswith("mxnet")), None)

    @property
    def file(self) -> Path:
        """Where the lock is kept."""
        start = self.start.text if isinstance(self.start, Lock) else str(self.start)
        key = hashlib.sha256(f"{start}\0{self._input}".encode()).hexdigest()[:16]
        return self.cache / f"{key}.txt"

    def resolved(self) -> Lock | None:
        """Return the lock, if it was made before; the base's where nothing is added."""
        self._check_mxnet()
        if (
            isinstance(self.start, Lock)
            and not self.requirements.lines
            and (self.requirements.mxnet is None or self._mxnet is not None)
        ):
            return self.start
        return read_lock(self.file) if self.file.exists() else None

    async def resolve(self, on_line: Callable[[str], None] | None = None) -> Lock:
        """Return the lock; make it unless it was made before, with uv or, for Python 2.7, with pip.

        `on_line` gets pip's output, which takes minutes.

        Raises:
            BuildError: the requirements contradict what the base needs, or can't be had for its Python.
            ImageError: they can't be resolved now.
        """
        if (known := self.resolved()) is not None:
            return known
        try:
            self.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.cache, prefix=".") as temporary:
                lock = await self._made_in(Path(temporary), on_line)
                write_private(self.file, lock.text.encode())
                return lock
        except OSError as error:
            raise ImageError(f"The requirements can't be resolved in {self.cache}: {error}") from error

    async def _made_in(self, folder: Path, on_line: Callable[[str], None] | None) -> Lock:
        asked, made = folder / "requirements.in", folder / "requirements.out"
        asked.write_text(self._input, "utf-8")
        (folder / "pyproject.toml").write_text(UV_SETTINGS, "utf-8")
        interpreter = await find_interpreter(self.start.python, folder)
        if self.start.python == python2.PYTHON2 and self.start.day is not None:
            ended = await python2.resolve(asked, made, self.start.day, interpreter, on_line)
        else:
            command: list[str | Path] = [
                *(uv_program(), "pip", "compile", "--no-progress", "--no-header", "--no-annotate", "--quiet"),
                *("--generate-hashes", "--python", interpreter, "--output-file", made, asked),
                *self._options(),
            ]
            ended = await run(command, cwd=folder)
        if ended.code != 0:
            raise self._error(ended)
        day = f"# as of: {self.start.day}\n" if self.start.day else ""
        return parse_lock(f"# python: {self.start.python}\n{day}{made.read_text('utf-8')}", "the resolved requirements")

    def _options(self) -> list[str]:
        if not isinstance(self.start, DayImage):
            return []
        names = [match[0] for line in self.start.requirements if (match := _NAME.match(line))]
        return [*day_options(self.start.day, names), *(f"--only-binary={each}" for each in ONLY_BINARY)]

    def _check_mxnet(self) -> None:
        """Reject a requirement of an MXNet that the base doesn't have: that of the requirements chooses the base."""
        asked = self.requirements.mxnet
        if asked is not None and self._mxnet is not None and not asked.matches(self._mxnet):
            raise BuildError(
                f"The requirements ask for {asked.text}, and {self.base} has MXNet {self._mxnet}: add the image again"
                " without a base, and it gets that MXNet."
            )

    def _error(self, ended: Ended) -> ImageError:
        asked = ", ".join(line for line, _ in self.requirements.lines) or str(self.start)
        text = " ".join(" ".join(ended.lines).split())
        if "No solution found" not in text or "network was disabled" in text or "tool dependencies" in text:
            return build_error(f"The packages can't be added to {self.base} ({asked})", ended, self.cache.parent)
        shown = "\n".join(f"    {line}" for line in ended.lines if line.strip() and not _HIDDEN.search(line))
        hidden = dict(_HIDDEN.findall(text))
        if undated := [name for name, day in hidden.items() if not day]:
            advice = (
                f"The index doesn't say when {undated[0]} was uploaded, which a day needs: take it from PyPI (without"
                " UV_DEFAULT_INDEX and UV_INDEX) or, if only your index has it, as it is now, by the line"
                f" `exclude-newer-package = {{ {undated[0]} = false }}` in ~/.config/uv/uv.toml."
            )
        else:
            sources = " and ".join(dict.fromkeys(source for _, source in self.requirements.lines))
            other = f"ask for versions that fit in {sources}, or for any: the name alone" if sources else "another day"
            advice = f"{self._cause(text, hidden)} {other}."
        return BuildError(f"These packages can't be added to {self.base} ({asked}):\n{shown}\n{advice}")

    def _cause(self, text: str, hidden: dict[str, str]) -> str:
        """Return in words what of the base is in the way; `hidden` are packages of later days."""
        if isinstance(self.start, DayImage):
            if (pinned := _NO_WHEEL.search(text)) and (older := self.start.older_python):
                return f"{pinned[1]} has no wheel for Python {self.start.python}: --python {older}; or"
            if hidden:
                name, day = max(hidden.items(), key=lambda each: each[1])
                then = f": --as-of {day}" if "requested version" in text else ". A later day is --as-of"
                return f"The {name} that is asked for was uploaded after {self.start.day}{then}; or"
            return f"The image has {self.start}. Others are --as-of and --python; or"
        pins = {name.lower(): version for name, version in _PINNED.findall(text)}
        causes = [f"{name} {version}" for name, version in pins.items() if self.start.pins.get(name) == version]
        has_mxnet = any(name.startswith("mxnet") for name in self.start.pins)
        is_numpy = any(each.startswith("numpy ") for each in causes)
        reason = ", the newest that MXNet 1.9.1 can be imported with" if has_mxnet and is_numpy else ""
        needed = f"needs {' and '.join(causes)}{reason}" if causes else f"runs Python {self.start.python}"
        return f"{self.base} {needed}:"


def _check(line: str, source: str) -> None:
    """Reject a line that names no package of an index."""
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
