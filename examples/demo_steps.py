"""What the demos of the examples share: steps that are told, programs of this environment, a local cluster."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
"""What all programs get; a demo may add to it."""


@contextmanager
def local_cluster() -> Iterator[None]:
    """A running local cluster, to which $KUBECONFIG points. One that ran already is left running."""
    step("A local cluster")
    was_running = subprocess.run([BIN / "mxjob", "local", "status"], capture_output=True, check=False).returncode == 0
    run("mxjob", "local", "up", "--detach")
    try:
        ENVIRONMENT["KUBECONFIG"] = run("mxjob", "local", "kubeconfig", quiet=True).strip()
        yield
    finally:
        if not was_running:
            run("mxjob", "local", "down")


def run(program: str, *args: str, quiet: bool = False) -> str:
    """Run a program of this environment; returns what it printed if that was not shown."""
    done = subprocess.run(
        [BIN / program, *args],
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=quiet,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        fail(f"{program} {' '.join(args)} failed (exit code {done.returncode})\n{done.stderr or ''}")
    return done.stdout or ""


def step(title: str) -> None:
    """Say what comes next."""
    print(f"\n==> {title}", flush=True)


def fail(message: str) -> NoReturn:
    """End with a message."""
    sys.exit(f"{Path(sys.argv[0]).parent.name}: {message}")
