"""Day that the history of a script's folder proposes for `--as-of`."""

import contextlib
import re
import subprocess
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from mxnet_operator.cli.running.given_command import is_given

_RECENT_DAYS: Final = 365
_FIRST: Final = date(2017, 8, 31)
"""Day from which MXNet 0.11 is on the index; 0.9 and 0.10 lack operators that scripts of their time import."""
_FIRST_OF_WORKERS: Final = date(2018, 2, 20)
"""Day of MXNet 1.1, the first of which several workers train on the local cluster, with an optimizer on the servers."""
_SECONDS: Final = 10
_VERSION: Final = re.compile(r"""^__version__ = ["']([\d.]+)["']""", re.MULTILINE)
"""Line of MXNet's sources."""


def proposed_day(folder: Path) -> date | None:
    """Return the day of the last git commit of a folder.

    None where git doesn't track the folder, or the commit is younger than a year: packages of today fit it.
    """
    day = _last_commit(folder)
    return day if day is not None and (datetime.now(UTC).date() - day).days > _RECENT_DAYS else None


def day_of_packages(folder: Path, packages: Iterable[str]) -> date | None:
    """Return the day of the last commit of a folder's repository, if that is the source of one of the packages.

    Its examples need the package of that day, which may be newer than themselves; those of MXNet its next release.
    """
    from mxnet_operator.local.images.day import RELEASES  # noqa: PLC0415

    root = next((each for each in folder.parents if (each / ".git").exists()), folder)
    if root == folder:
        return None
    with contextlib.suppress(OSError):
        found = _VERSION.search((root / "python" / "mxnet" / "libinfo.py").read_text("utf-8"))
        return next((each.released for each in RELEASES if found and each.version == found[1]), None)
    files = (root / source / each / "__init__.py" for each in packages for source in ("", "python", "src"))
    return _last_commit(root) if any(each.is_file() for each in files) else None


def _last_commit(folder: Path) -> date | None:
    command = ["git", "-C", str(folder), "log", "-1", "--format=%cI", "--", "."]
    try:
        done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=_SECONDS)
        return date.fromisoformat(done.stdout.strip()[:10])
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def runnable_day(folder: Path, python: str | None = None, first: date | None = None) -> date | None:
    """Return the proposed day, if this machine has or can fetch the Python of that day.

    It is no day before `first`, or before that of the first MXNet.
    """
    day = proposed_day(folder)
    if day is None:
        return None
    from mxnet_operator.local.images.day import Wanted, choose  # noqa: PLC0415
    from mxnet_operator.local.images.environment import installed_interpreter  # noqa: PLC0415
    from mxnet_operator.local.images.uv_process import ImageError  # noqa: PLC0415

    day = max(day, first or day, _FIRST_OF_WORKERS if is_given("--workers") else _FIRST)
    try:
        choose(Wanted(day, python), None, lambda version: installed_interpreter(version) is not None)
    except ImageError:
        return None
    return day
