"""`mxjob` as a process of its own that is forked from one which has imported it.

Python's start and the imports take five times as long as what most commands do. What begins here differs from `mxjob`
in a shell by that alone: its arguments, environment, folder, files and exit code are its own. Run as
`python forked_mxjob.py NAME` this is the process that is forked; it ends when its stdin is closed.
"""

import contextlib
import importlib
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROGRAM = "mxnet_operator.cli.mxjob"
_IMPORTED_LATER = ("mxnet_operator.kube.client", "pydantic")
"""What the program imports once a command is known, beside the loader of kubeconfigs."""
_starting = threading.Lock()
_running: list[tuple["subprocess.Popen[bytes]", str]] = []


def run(
    arguments: Sequence[str], environment: Mapping[str, str], stdin: str | None, timeout: float
) -> "subprocess.CompletedProcess[str]":
    """Run `mxjob` to its end, as `subprocess.run` does that captures texts.

    Raises:
        subprocess.TimeoutExpired: it had not ended after so many seconds, and was killed.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as given,
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        given.write(stdin or "")
        given.seek(0)
        connection.connect(_address(_name_of_server()))
        socket.send_fds(connection, [b"\n"], [file.fileno() for file in (given, out, err)])
        asked = {"arguments": [*arguments], "environment": {**environment}, "folder": str(Path.cwd())}
        connection.sendall(json.dumps(asked).encode() + b"\n")
        connection.settimeout(timeout)
        answers = connection.makefile()
        pid = int(answers.readline())
        try:
            code = int(answers.readline())
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired([*arguments], timeout) from None
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess([*arguments], code, out.read(), err.read())


def pytest_sessionfinish() -> None:
    """End the process that is forked."""
    while _running:
        process, _ = _running.pop()
        assert process.stdin is not None
        process.stdin.close()
        process.wait()  # and not until its stdout ends, which a command that goes on has, too


def _name_of_server() -> str:
    with _starting:
        if not _running:
            name = f"mxjob-{secrets.token_hex(8)}"
            command = [sys.executable, __file__, name]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            _running.append((process, name))
        return _running[0][1]


def _address(name: str) -> str:
    return f"\0{name}"  # no file is left of it, however it ends


def _serve(name: str) -> dict[str, Any]:
    """Fork for each command; returns in the process that is to run one, as its stdin, stdout and stderr say."""
    for module in (PROGRAM, *_IMPORTED_LATER):
        importlib.import_module(module)
    importlib.import_module("mxnet_operator.kube.loader").loaders()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(_address(name))
    listener.listen(16)
    print("ready", flush=True)
    connection = None
    while connection is None:
        if sys.stdin in select.select([listener, sys.stdin], [], [])[0]:
            sys.exit()
        accepted, _ = listener.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork():
            accepted.close()
        else:
            connection = accepted
    listener.close()
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    asked: dict[str, Any] = json.loads(connection.makefile().readline())
    if pid := os.fork():
        connection.sendall(f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    connection.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    return asked


def _main() -> None:
    asked = _serve(sys.argv[1])
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["mxjob", *asked["arguments"]]
    importlib.import_module(PROGRAM).main()


if __name__ == "__main__":
    _main()
