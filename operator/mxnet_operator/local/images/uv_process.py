"""uv as a child process: its output and end, the progress of a build that it prints, and errors for its failures."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from uv import find_uv_bin


class ImageError(Exception):
    """An image can't be named, added or built; the message says why and what to do next."""


class BuildError(ImageError):
    """The build of an image failed in a way in which it will fail again."""


# What would point uv or the Python that it starts at another environment than the one asked for, and what makes
# `import mxnet` play a role in a job instead of returning.
_UNWANTED = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "UV_SYSTEM_PYTHON")
_UNWANTED_PREFIX = "DMLC_"
_KEPT_LINES = 40
_LINE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a process: its exit code and its last lines of stdout and stderr together."""

    code: int
    lines: tuple[str, ...]


def uv_program() -> str:
    """Find the program uv: that of the Python package, else the one on PATH.

    Raises:
        ImageError: there is none.
    """
    with contextlib.suppress(FileNotFoundError):
        return find_uv_bin()
    found = shutil.which("uv")
    if found is None:
        raise ImageError("uv isn't installed; it builds the images. Install it with `pip install uv`.")
    return found


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Copy `environment` without variables that would change a build."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _UNWANTED and not name.startswith(_UNWANTED_PREFIX)
    }


async def run(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    on_line: Callable[[str], None] | None = None,
    held: Iterable[int] = (),
    variables: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command to its end, passing its output line by line to `on_line`.

    `held` are file descriptors that it inherits: a lock stays taken for as long as the command lives, even when
    this process is killed; `variables` join its environment.
    Cancelling ends the command and all that it started, and waits until it is gone.
    """
    process = await asyncio.create_subprocess_exec(
        *(str(word) for word in command),
        cwd=cwd,
        env={**clean_environment(os.environ), **(variables or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        limit=_LINE_BYTES,
        pass_fds=tuple(held),
    )
    assert process.stdout is not None  # noqa: S101 - asked for above
    lines: deque[str] = deque(maxlen=_KEPT_LINES)
    try:
        async for raw in process.stdout:
            line = raw.decode("utf-8", "replace").rstrip()
            lines.append(line)
            if on_line is not None:
                on_line(line)
        return Ended(await process.wait(), tuple(lines))
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


Stage = Literal["waiting", "resolve", "python", "environment", "download", "install", "check", "done"]

TOTAL: Final = 100
# Where each stage begins on the one bar from 0 to 100. Downloading 106 MiB is most of a first build.
_BEGINS: Final[dict[Stage, int]] = {
    "waiting": 0,
    "resolve": 0,
    "python": 0,
    "environment": 3,
    "download": 5,
    "install": 80,
    "check": 88,
    "done": TOTAL,
}
_RESOLVED = re.compile(r"Resolved (\d+) packages?")
_DOWNLOADING = re.compile(r"\s*Downloading (\S+) \(([\d.]+)\s*([kKMG]?i?B)\)")
_DOWNLOADED = re.compile(r"\s*Downloaded (\S+)")
_PREPARED = re.compile(r"Prepared \d+ packages?|Installing collected packages")
_OF_PIP = "Collecting "
"""Begin of a line of pip's, which downloads one file after another."""
_MIB: Final = {"B": 1 / 2**20, "kB": 1 / 2**10, "KiB": 1 / 2**10, "MB": 1.0, "MiB": 1.0, "GiB": 1024.0}


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """Progress of a build: `done` of `total`, which never decreases, so that one bar shows the whole build.

    `detail` is a few words for people, such as "mxnet (46.8 MiB)".
    """

    image: str
    stage: Stage
    done: int
    total: int
    detail: str


Report = Callable[[BuildProgress], None]


class ProgressReader:
    """Parser of the output of one `uv pip sync` or `pip install` into the progress of an image's build."""

    def __init__(self, image: str, report: Report) -> None:
        self._image = image
        self._report = report
        self._sizes: dict[str, float] = {}
        self._left: set[str] = set()
        self._done = _BEGINS["download"]
        self.packages = 0

    def stage(self, stage: Stage, detail: str) -> None:
        """Report that a stage of the build begins."""
        self._report(BuildProgress(self._image, stage, _BEGINS[stage], TOTAL, detail))

    def resolving(self, line: str) -> None:
        """Report a download of pip's, which resolves by the files themselves."""
        if line.startswith(_OF_PIP) or _DOWNLOADING.match(line):
            self.stage("resolve", re.sub(r"https?://\S*/", "", line.strip()))

    def line(self, line: str) -> None:
        """Parse one line of the output; lines without progress are ignored."""
        if match := _RESOLVED.match(line):
            self.packages = int(match[1])
            self.stage("download", f"{self.packages} packages")
        elif match := _DOWNLOADING.match(line):
            self._sizes[match[1]] = float(match[2]) * _MIB.get(match[3], 0.0)
            self._left.add(match[1])
            self._downloads()
        elif match := _DOWNLOADED.match(line):
            self._left.discard(match[1])
            self._downloads()
        elif line.startswith(_OF_PIP):
            self._left.clear()
        elif _PREPARED.match(line):
            self.stage("install", f"{self.packages} packages")

    def _downloads(self) -> None:
        total = sum(self._sizes.values())
        # The floor of one keeps the bar moving where uv gives no sizes; the cap, where it begins another late.
        got = total - sum(self._sizes[name] for name in self._left)
        begin, end = _BEGINS["download"], _BEGINS["install"]
        self._done = max(self._done, begin + int((end - begin) * got / total) if total else begin)
        largest_first = sorted(self._left, key=lambda name: -self._sizes[name])
        waiting_for = ", ".join(f"{name} ({self._sizes[name]:.0f} MiB)" for name in largest_first)
        self._report(
            BuildProgress(self._image, "download", self._done, TOTAL, waiting_for or f"{self.packages} packages")
        )


_SHOWN_LINES = 12
_ADVICE: tuple[tuple[str, bool, str], ...] = (
    (
        r"hash mismatch",
        False,
        "A file isn't the one that was locked. If an index or a proxy changes files, use another (UV_DEFAULT_INDEX); "
        "if uv's cache is damaged, `uv cache clean` empties it; if the lock is your own, write it again.",
    ),
    (
        r"no space left|os error 28|disk quota|os error 122",
        True,
        "The disk is full: an MXNet or TVM image needs about 400 MB in {home}, and uv's cache as much again. Make "
        "room, or set MXJOB_HOME (and UV_CACHE_DIR) to folders on a larger disk.",
    ),
    (
        r"network connectivity is disabled|network was disabled",
        True,
        "uv is set to stay offline (UV_OFFLINE, --offline), and its cache lacks what the image needs.",
    ),
    (
        r"failed to install cpython",
        True,
        "uv's downloads of Python, on GitHub, can't be reached{proxy}. UV_PYTHON_INSTALL_MIRROR names another place.",
    ),
    (
        r"dns error|error sending request|client error|failed to fetch|connection re|timed out|tls|certificate",
        True,
        "The package index can't be reached{proxy}. uv honours HTTPS_PROXY, UV_DEFAULT_INDEX and SSL_CERT_FILE (not "
        "pip's settings). What has been downloaded is kept: the next try goes on from there.",
    ),
    (
        r"libcuda\.so",
        False,
        "This machine lacks NVIDIA's driver, which the MXNet for GPUs needs: the MXNet for CPUs is mxjob/mxnet:1.9.1.",
    ),
    (
        r"libgfortran\.so\.3",
        False,
        "This MXNet needs libgfortran.so.3, which libgfortran3 of Debian 9 and Ubuntu 18.04 has. MXNet 1.0.0.post4 and "
        "newer bring it: --mxnet 1.0.0.",
    ),
    (
        r"libgomp\.so",
        False,
        "MXNet needs the system's OpenMP library: `apt-get install libgomp1` or `dnf install libgomp`.",
    ),
    (
        r"no wheels? with a matching|no matching distribution|isn't compatible|not compatible|failed to build",
        False,
        "There is no ready-made package for this machine and Python. MXNet has them for Linux on x86-64; another day "
        "(--as-of) or Python (--python) may have one of the other.",
    ),
    (
        r"permission denied|os error 13|read-only file system",
        True,
        "The user running this must be able to write to {home} and to uv's cache (UV_CACHE_DIR).",
    ),
)
"""What is found in the output, whether a later try can succeed, and what to do."""


def _proxy() -> str:
    """Return the proxy that uv takes, in words and without its password; empty where there is none."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        if value := os.environ.get(name):
            return f" through the proxy of {name}, {re.sub(r'//[^/@]*@', '//', value)} (is it running?)"
    return ""


def build_error(what: str, ended: Ended, home: Path) -> ImageError:
    """Build the error for a program that failed: its last lines, and advice that fits them."""
    shown = [line for line in ended.lines if line.strip()][-_SHOWN_LINES:]
    text = "\n".join(shown).lower()
    can_pass, advice = next(
        ((passes, words) for pattern, passes, words in _ADVICE if re.search(pattern, text)), (False, "")
    )
    message = "\n".join(
        [
            f"{what}:",
            *(f"    {line}" for line in shown),
            *([advice.format(home=home, proxy=_proxy())] if advice else []),
        ]
    )
    return ImageError(message) if can_pass or ended.code == -signal.SIGKILL else BuildError(message)
