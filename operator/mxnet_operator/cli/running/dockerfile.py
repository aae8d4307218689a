"""Dockerfile of a script's folder for a cluster, and the lock that it installs where the image is of a day."""

import asyncio
import contextlib
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mxnet_operator.cli.errors import CommandError, extra_needed
from mxnet_operator.cli.running.images import image_store

_LOCK: Final = "requirements.lock"
_DEBIANS: Final = {"2.7": "buster", "3.6": "bullseye"}
"""Newest Debian that has an official image of a Python, where it isn't bookworm."""
_ARCHIVED: Final = (
    "# This Debian is archived.",
    r"RUN sed -i 's,//[a-z]*\.debian\.org,//archive.debian.org,; /-updates/d' /etc/apt/sources.list",
)
_CUDA: Final = (
    "# CUDA 11 comes as wheels; for an older one, install its libraries here. The driver is the node's.",
    "RUN printf '%s\\n' /usr/local/lib/python3*/site-packages/nvidia/*/lib >/etc/ld.so.conf.d/cuda.conf && ldconfig",
)
_LIBGFORTRAN: Final = (
    "RUN ln -s /usr/local/lib/python*/site-packages/numpy/.libs/libgfortran-*.so.3.0.0"
    " /usr/lib/x86_64-linux-gnu/libgfortran.so.3"
)
"""MXNet 0.12 and 1.0.0 need it, and Debian has a newer one."""


def write_dockerfile(folder: Path, command: Sequence[str], packages: Sequence[str], base: str) -> bool:
    """Write a Dockerfile of a folder unless it has one, and its .dockerignore; returns whether it was written.

    Where the MXNet image `base` is one of a day, the lock of its packages is written beside it.

    Raises:
        CommandError: it can't be written, or its packages can't be had.
    """
    if (folder / "Dockerfile").exists():
        return False
    lines = _of_a_day(folder, packages, base) or _of_today(folder, packages)
    lines += [
        "COPY . .",
        "# Scripts write where they run.",
        "RUN chown -R 65532:65532 /workspace",
        "USER 65532:65532",
        f"CMD {json.dumps(list(command), ensure_ascii=False)}",
        "",
    ]
    is_new = write_new(folder / "Dockerfile", "\n".join(lines))
    if is_new and not (folder / ".dockerignore").exists():
        write_new(folder / ".dockerignore", _dockerignore(folder))
    return is_new


def write_new(path: Path, text: str) -> bool:
    """Write a file unless it exists; returns whether it was written.

    Raises:
        CommandError: it can't be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error
    return True


def _of_today(folder: Path, packages: Sequence[str]) -> list[str]:
    requirements = folder / "requirements.txt"
    added = list(packages)
    lines = [
        "# Image of this folder for MXJobs, written by `mxjob`; change it as you like.",
        "FROM mxjob/mxnet:1.9.1",
        "WORKDIR /workspace",
    ]
    is_lock = requirements.is_file() and "--hash=" in requirements.read_text("utf-8", "replace")
    if is_lock:
        lines += ["COPY requirements.txt .", "RUN pip install --no-cache-dir --require-hashes -r requirements.txt"]
    elif requirements.is_file():
        lines += ["COPY requirements.txt ."]
        added = ["-r", "requirements.txt", *added]
    if added:
        lines += [
            "# The packages that MXNet needs keep their versions.",
            "RUN pip freeze >/tmp/base.txt && pip install --no-cache-dir -c /tmp/base.txt "
            + shlex.join(added)
            + ' && python -c "import mxnet"',
        ]
    return lines


def _of_a_day(folder: Path, packages: Sequence[str], base: str) -> list[str] | None:
    """Write the lock of a day's image and return the Dockerfile that installs it; None for another base."""
    with image_store() as store:
        from mxnet_operator.local.images.day import DayImage  # noqa: PLC0415
        from mxnet_operator.local.images.environment import PYTHON_VARIABLES  # noqa: PLC0415

        if (image := DayImage.parse(base)) is None:
            return None
        lock = asyncio.run(store.lock_of(folder, packages, base))
    try:
        (folder / _LOCK).write_text(lock.text, "utf-8")
    except OSError as error:
        raise CommandError(f"{folder / _LOCK}: {error.strerror or error}") from error
    return [
        f"# Image of this folder for MXJobs, written by `mxjob`: {image}.",
        f"FROM python:{image.python}-slim-{_DEBIANS.get(image.python, 'bookworm')}",
        *(_ARCHIVED if image.python == "2.7" else ()),
        "# libmxnet.so is linked to both.",
        "RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1 libquadmath0 \\",
        "    && rm -rf /var/lib/apt/lists/*",
        f"ENV {' '.join(map('='.join, PYTHON_VARIABLES.items()))}",
        "WORKDIR /workspace",
        f"COPY {_LOCK} .",
        f"RUN pip install --no-cache-dir --require-hashes -r {_LOCK}",
        *((_LIBGFORTRAN,) if image.mxnet.startswith(("0.12.", "1.0.0")) else ()),
        *(_CUDA if image.cuda else ('RUN python -c "import mxnet"',)),
    ]


def _dockerignore(folder: Path) -> str:
    """Return a .dockerignore that leaves out what the local cluster does: keys, and what makes the folder too large."""
    with extra_needed("local"):
        from mxnet_operator.local.images.snapshot import LEFT_OUT, take_snapshot  # noqa: PLC0415
        from mxnet_operator.local.images.uv_process import ImageError  # noqa: PLC0415
    lines = ["# Files that no image needs, and that none may have.", *(f"**/{each}" for each in LEFT_OUT)]
    with contextlib.suppress(ImageError):
        lines += take_snapshot(folder).left_out
    return "\n".join([*lines, ""])
