"""Child processes of uv: find the program, stream its output, and end it when the caller is cancelled."""

import asyncio
import contextlib
import os
import shutil
import signal
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

from mxnet_operator.local.images.errors import ImageError

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
