"""Progress of an image's build, read from the output of uv."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

Stage = Literal["waiting", "python", "environment", "download", "install", "check", "done"]

TOTAL: Final = 100
# Where each stage begins on the one bar from 0 to 100. Downloading 106 MiB is most of a first build.
_BEGINS: Final[dict[Stage, int]] = {
    "waiting": 0,
    "python": 0,
    "environment": 3,
    "download": 5,
    "install": 80,
    "check": 88,
    "done": TOTAL,
}
_RESOLVED = re.compile(r"Resolved (\d+) packages?")
_DOWNLOADING = re.compile(r"\s*Downloading (\S+) \(([\d.]+)\s*([KMG]?i?B)\)")
_DOWNLOADED = re.compile(r"\s*Downloaded (\S+)")
_PREPARED = re.compile(r"Prepared \d+ packages?")
_MIB: Final = {"B": 1 / 2**20, "KiB": 1 / 2**10, "MiB": 1.0, "GiB": 1024.0}


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
    """Parser of the output of one `uv pip sync` into the progress of an image's build."""

    def __init__(self, image: str, report: Report) -> None:
        self._image = image
        self._report = report
        self._sizes: dict[str, float] = {}
        self._left: set[str] = set()
        self._packages = 0

    def stage(self, stage: Stage, detail: str) -> None:
        """Report that a stage of the build begins."""
        self._report(BuildProgress(self._image, stage, _BEGINS[stage], TOTAL, detail))

    def line(self, line: str) -> None:
        """Parse one line of uv's output; lines without progress are ignored."""
        if match := _RESOLVED.match(line):
            self._packages = int(match[1])
            self.stage("download", f"{self._packages} packages")
        elif match := _DOWNLOADING.match(line):
            self._sizes[match[1]] = float(match[2]) * _MIB.get(match[3], 0.0)
            self._left.add(match[1])
            self._downloads()
        elif match := _DOWNLOADED.match(line):
            self._left.discard(match[1])
            self._downloads()
        elif _PREPARED.match(line):
            self.stage("install", f"{self._packages} packages")

    def _downloads(self) -> None:
        total = sum(self._sizes.values())
        # The floor of one keeps the bar moving where uv gives no sizes; the cap, where it begins another late.
        got = total - sum(self._sizes[name] for name in self._left)
        begin, end = _BEGINS["download"], _BEGINS["install"]
        done = begin + int((end - begin) * got / total) if total else begin
        largest_first = sorted(self._left, key=lambda name: -self._sizes[name])
        waiting_for = ", ".join(f"{name} ({self._sizes[name]:.0f} MiB)" for name in largest_first)
        self._report(BuildProgress(self._image, "download", done, TOTAL, waiting_for or f"{self._packages} packages"))
