"""A Redis server for tests: the broker of Airflow's CeleryExecutor. It listens on a Unix socket and on no port."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes_programs import MissingProgramError
from left_overs import folder_prefix
from real_node.debian import unpacked
from waiting import SECONDS, eventually

PACKAGES = ("redis-server", "redis-tools", "libjemalloc2", "liblzf1")


@contextlib.contextmanager
def redis_broker() -> Iterator[str]:
    """The address of a running server, as Celery takes it; the test is skipped where there is none, or fails in CI."""
    program, environment = _program()
    # Not in pytest's folders: a socket's path is at most some 100 characters long.
    with tempfile.TemporaryDirectory(prefix=folder_prefix(), dir="/tmp") as folder:
        socket = Path(folder) / "socket"
        options = {"port": "0", "unixsocket": str(socket), "dir": folder, "save": "", "logfile": f"{folder}/log"}
        server = subprocess.Popen(
            [program, *(word for name, value in options.items() for word in (f"--{name}", value))],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
        )
        try:
            eventually(socket.exists)
            yield f"redis+socket://{socket}"
        finally:
            server.terminate()
            server.wait(SECONDS)


def _program() -> tuple[str, dict[str, str]]:
    """The path of the program, and the variables that it needs."""
    if installed := shutil.which("redis-server"):
        return installed, {}
    try:
        usr = unpacked(PACKAGES) / "usr"
    except MissingProgramError as error:
        pytest.fail(str(error), pytrace=False) if os.environ.get("CI") else pytest.skip(str(error))
    (library,) = usr.glob("lib/*/liblzf.so.1")
    return str(usr / "bin" / "redis-server"), {"LD_LIBRARY_PATH": str(library.parent)}
