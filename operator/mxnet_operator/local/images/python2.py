"""Python 2.7, which uv doesn't know: environments by the last virtualenv for it, packages by its last pip."""

import asyncio
import contextlib
import hashlib
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from packaging.utils import parse_sdist_filename, parse_wheel_filename

from mxnet_operator.local.images.uv_process import Ended, ImageError, run, uv_program

PYTHON2: Final = "2.7"
_VIRTUALENV: Final = "virtualenv<20.22"
_INDEX_OF_A_DAY: Final = "pypi-timemachine==0.3.1"
"""Server of a package index without what was uploaded after a day: pip for Python 2.7 can't leave that out."""
_POLL_SECONDS: Final = 0.1


def make_environment(interpreter: Path, folder: Path) -> list[str | Path]:
    """Return the command that makes a virtual environment of a Python 2.7, with pip."""
    command = (uv_program(), "tool", "run", "--quiet", "--from", _VIRTUALENV, "virtualenv", "--quiet")
    return [*command, "--python", interpreter, folder]


def install(python: Path, lock: Path) -> list[str | Path]:
    """Return the command that installs a lock into an environment."""
    return [python, "-m", "pip", "install", "--no-deps", "--require-hashes", "--requirement", lock]


def pip_variables() -> dict[str, str]:
    """Return variables by which pip uses uv's index, and no other place."""
    index = os.environ.get("UV_DEFAULT_INDEX")
    return {"PIP_FIND_LINKS": "", "PIP_NO_PYTHON_VERSION_WARNING": "1"} | ({"PIP_INDEX_URL": index} if index else {})


async def resolve(
    asked: Path, made: Path, day: date, interpreter: Path, on_line: Callable[[str], None] | None
) -> Ended:
    """Resolve the requirements of the file `asked` as of the end of a day, and write them with hashes into `made`.

    pip for Python 2.7 has no dry run: all files are downloaded into a temporary folder beside `asked`.
    """
    folder = asked.parent
    with tempfile.TemporaryDirectory(dir=folder, prefix=".") as temporary:
        environment, files = Path(temporary, "venv"), Path(temporary, "files")
        ended = await run(make_environment(interpreter, environment), cwd=folder)
        if ended.code != 0:
            return ended
        async with _index_of(day, folder) as url:
            command: list[str | Path] = [
                *(environment / "bin" / "python", "-m", "pip", "download", "--use-feature=2020-resolver"),
                *("--no-cache-dir", "--index-url", url, "--trusted-host", "127.0.0.1"),
                *("--dest", files, "--requirement", asked),
            ]
            ended = await run(command, cwd=folder, on_line=on_line, variables=pip_variables())
        if ended.code == 0:
            await asyncio.to_thread(_write_lock, files, made)
        return ended


@contextlib.asynccontextmanager
async def _index_of(day: date, folder: Path) -> AsyncIterator[str]:
    """Yield the URL of the index of a day, on loopback."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    command = [
        *(uv_program(), "tool", "run", "--quiet", "--from", _INDEX_OF_A_DAY, "pypi-timemachine", "--quiet"),
        *("--port", str(port), f"{day + timedelta(days=1)}T00:00:00Z"),
    ]
    if index := os.environ.get("UV_DEFAULT_INDEX"):
        command += ["--index-url", index]
    server = asyncio.create_task(run(command, cwd=folder))
    try:
        while not await _answers(port):
            if server.done():
                shown = "\n    ".join(server.result().lines)
                raise ImageError(f"The index of {day}, which pip for Python 2.7 needs, doesn't start:\n    {shown}")
            await asyncio.sleep(_POLL_SECONDS)
        yield f"http://127.0.0.1:{port}/snapshot/{day + timedelta(days=1)}T00:00:00Z/"
    finally:
        server.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await server


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def _write_lock(files: Path, made: Path) -> None:
    made.write_text("".join(_pin(each) for each in sorted(files.iterdir())), "utf-8")


def _pin(file: Path) -> str:
    """Return the line of a lock for a downloaded file."""
    name, version = parse_wheel_filename(file.name)[:2] if file.suffix == ".whl" else parse_sdist_filename(file.name)
    return f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"
