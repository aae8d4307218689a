"""Python environments of locked requirements, for what can't be in one environment with the rest of the tests."""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kubernetes_programs import building
from program_processes import tools_cache

from mxnet_operator.local.images.uv_process import clean_environment, uv_program

_TOOLS = Path(__file__).resolve().parents[1] / "tools"


@functools.cache
def locked_python(name: str) -> Path:
    """The Python with tests/tools/NAME/requirements.txt, installed into the user's cache if need be.

    One of pytest's workers installs it, others that need it wait. Where it can't be had, the test is skipped, or fails
    in CI.
    """
    lock = _TOOLS / name / "requirements.txt"
    key = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = tools_cache() / f"{name}-{key}"
    python, complete = folder / "bin" / "python", folder / "complete"
    with building(folder.name):
        if not (complete.exists() and python.exists()):  # workers without this lock could leave the mark alone
            _install(lock, folder)
            complete.touch()
    return python


def _install(lock: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for command in (
        ["venv", "--python", sys.executable, str(folder)],
        ["pip", "sync", "--python", str(folder), "--compile-bytecode", "--require-hashes", str(lock)],
    ):
        done = subprocess.run(
            [uv_program(), *command], env=clean_environment(os.environ), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            why = f"{lock} could not be installed: {done.stderr[-2000:]}"
            pytest.fail(why, pytrace=False) if os.environ.get("CI") else pytest.skip(why)
