"""Programs that tests start, such as those of a Kubernetes control plane: where they are found, and how they run."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import platformdirs

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"


def tools_cache() -> Path:
    """Return the folder in the user's cache with a folder of built programs for each version."""
    return Path(platformdirs.user_cache_dir("mxjob")) / "tools"


def asset(name: str) -> Path | None:
    """Find a program in the folder $KUBEBUILDER_ASSETS; None if that is not set or lacks it."""
    folder = os.environ.get(ASSETS_VARIABLE)
    path = Path(folder).absolute() / name if folder else None
    return path if path is not None and path.exists() else None


READY_SECONDS = 120
STOP_SECONDS = 10
POLL_SECONDS = 0.05

_T = TypeVar("_T")


class ProgramError(Exception):
    """A program ended by itself or didn't become ready; the message has the end of its log."""


@dataclass
class Program:
    """Started program and its log."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path

    def check(self) -> None:
        """Raise with the end of the log if the program has ended."""
        if self.process.poll() is not None:
            raise ProgramError(f"{self.name} ended with {self.process.returncode}: {self.log.read_text()[-3000:]}")

    def stop(self) -> None:
        """Stop the program by SIGTERM, then SIGKILL, and wait for its end."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Programs:
    """Programs with their files in one folder; `environment` is added to this process's own."""

    paths: Mapping[str, str | Path]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    started: list[Program] = field(default_factory=list)
    ports: list[socket.socket] = field(default_factory=list)
    ready_seconds: float = READY_SECONDS
    """How long each `wait` lasts at most."""

    def port(self, wanted: int = 0) -> int:
        """Reserve the wanted port of 127.0.0.1, or any if it is taken, for a program until `stop`."""
        self.ports.append(held_port(wanted))
        port: int = self.ports[-1].getsockname()[1]
        return port

    def start(self, name: str, **flags: object) -> Program:
        """Start a program with `--flag=value` for each flag, in its own session, apart from the terminal's signals."""
        command = [str(self.paths[name]), *(f"--{flag.replace('_', '-')}={value}" for flag, value in flags.items())]
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(Program(name, process, log))
        return self.started[-1]

    def wait(self, what: str, ready: Callable[[], _T]) -> _T:
        """Poll until `ready()` is true, while all programs run. Blocks.

        Raises:
            ProgramError: one of them ended, or it took too long.
        """
        give_up = time.monotonic() + self.ready_seconds
        while True:
            for program in self.started:
                program.check()
            with contextlib.suppress(OSError):  # not listening yet, or an answer that is a refusal
                if answer := ready():
                    return answer
            if time.monotonic() > give_up:
                logs = "\n".join(f"{each.name}: {each.log.read_text()[-1000:]}" for each in self.started)
                raise ProgramError(f"waited {self.ready_seconds} s for {what}\n{logs}")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Stop all programs, the last started first, and wait for their end. Blocks."""
        for program in reversed(self.started):
            program.stop()
        while self.ports:
            self.ports.pop().close()


def held_port(wanted: int = 0) -> socket.socket:
    """Open a socket on the wanted port of 127.0.0.1, or on any other if it is taken.

    While it is open, no other process gets the port by chance, but a program that sets SO_REUSEADDR, as servers do, can
    listen on it. So no other program can take the port between its choice and that program's start.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of its last holder don't count either
    try:
        held.bind(("127.0.0.1", wanted))
    except OSError:
        held.bind(("127.0.0.1", 0))
    return held
