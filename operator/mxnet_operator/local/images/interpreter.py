"""Python interpreter of an image: this one, another of this machine, or one that uv downloads."""

import sys
from pathlib import Path

from mxnet_operator.local.images.failures import build_error
from mxnet_operator.local.images.uv_process import run, uv_program


async def find_interpreter(version: str, cwd: Path) -> Path:
    """Find an interpreter of this version ("3.11" or "3.11.7"); download it if this machine has none.

    Raises:
        ImageError: there is none and none can be fetched; the message says what to install.
    """
    if _is_own(version):
        return Path(getattr(sys, "_base_executable", sys.executable))
    find = [
        uv_program(),
        "python",
        "find",
        "--no-project",
        "--system",
        "--no-python-downloads",
        "--no-progress",
        version,
    ]
    found = await run(find, cwd=cwd)
    if found.code == 0:
        return Path(found.lines[-1])
    install = [uv_program(), "python", "install", "--no-progress", version]
    fetched = await run(install, cwd=cwd)
    if fetched.code == 0:
        found = await run(find, cwd=cwd)
        if found.code == 0:
            return Path(found.lines[-1])
    what = (
        f"Python {version}, which the image needs, isn't on this machine and can't be fetched. Install it so that "
        f"`python{version}` is on PATH (apt, dnf, pyenv and conda have it)"
    )
    raise build_error(what, fetched, cwd)


def _is_own(version: str) -> bool:
    wanted = tuple(int(part) for part in version.split("."))
    return sys.implementation.name == "cpython" and tuple(sys.version_info[: len(wanted)]) == wanted
