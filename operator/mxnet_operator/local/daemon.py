"""Local cluster in the background: started in a session of its own, found and stopped by its lock."""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mxnet_operator.local.claims import AlreadyRunningError, lock_holder
from mxnet_operator.local.home import ClusterFiles, ClusterState, make_cluster_folder, running_state

READY = "ready"
STEP = "step "

_STOP_SECONDS = 30.0
_BUSY_SECONDS = 60.0
"""Longest wait for another cluster of this home that is starting or stopping."""
_BUSY_PAUSE = 0.1


class StartFailedError(Exception):
    """The cluster ended before it was ready."""

    def __init__(self, status: int, log_tail: str) -> None:
        super().__init__(f"the cluster ended with exit code {status} before it was ready")
        self.log_tail = log_tail


class BusyError(Exception):
    """Another cluster of this home is starting or stopping, and goes on to."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"the local cluster (pid {pid}) has been starting or stopping for {_BUSY_SECONDS:g} s")


class Announcer:
    """Pipe by which the background process reports its progress to the process that started it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def step(self, text: str) -> None:
        self._write(f"{STEP}{text}")

    def ready(self) -> None:
        """Report that the cluster is ready, and close the pipe."""
        self._write(READY)
        os.close(self._descriptor)

    def _write(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # whoever started us has gone
            os.write(self._descriptor, f"{line}\n".encode())


def start_detached(
    home: Path,
    command: Sequence[str],
    on_step: Callable[[str], None],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> ClusterState:
    """Start `command` with `--announce DESCRIPTOR` in the background and wait until it is ready.

    A cluster of this home that is starting, or stopping, is waited for. If interrupted, ends the process again.

    Raises:
        UnsafeHomeError: see `make_cluster_folder`.
        AlreadyRunningError: there is one, and it is ready.
        BusyError: there is one that neither becomes ready nor ends.
        StartFailedError: with the end of its log.
    """
    files = make_cluster_folder(home)
    while True:
        wait_for_other(files, on_step, sleep)
        try:
            return _start(files, command, on_step)
        except StartFailedError:
            if lock_holder(files.lock) is None:  # else somebody else's start was faster
                raise


def wait_for_other(
    files: ClusterFiles, on_step: Callable[[str], None], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait for another cluster of this home that is stopping, or starting.

    Raises:
        AlreadyRunningError: it is ready.
        BusyError: it neither becomes ready nor ends.
    """
    for _ in range(round(_BUSY_SECONDS / _BUSY_PAUSE)):
        if (pid := lock_holder(files.lock)) is None:
            return
        if running_state(files) is not None:
            raise AlreadyRunningError(pid)
        on_step(f"waiting for the cluster that is starting or stopping (pid {pid})")
        sleep(_BUSY_PAUSE)
    if (pid := lock_holder(files.lock)) is not None:
        raise BusyError(pid)


def _start(files: ClusterFiles, command: Sequence[str], on_step: Callable[[str], None]) -> ClusterState:
    reading, writing = os.pipe()
    log = os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        process = subprocess.Popen(
            [*command, "--announce", str(writing)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[writing],
            start_new_session=True,
        )
    finally:
        os.close(writing)
        os.close(log)
    with os.fdopen(reading) as announcements:
        try:
            for line in announcements:
                if line.startswith(STEP):
                    on_step(line.removeprefix(STEP).strip())
                elif line.strip() == READY:
                    state = running_state(files)
                    if state is not None:
                        process.returncode = 0  # it is init's child from now on: no warning that it still runs
                        return state
        except BaseException:
            process.terminate()
            process.wait()
            raise
    raise StartFailedError(process.wait(), log_tail(files))


def log_tail(files: ClusterFiles, lines: int = 20) -> str:
    with contextlib.suppress(OSError):
        return "\n".join(files.log.read_text("utf-8", "replace").splitlines()[-lines:])
    return ""


def stop(files: ClusterFiles) -> int | None:
    """Stop the home's cluster and wait until it has ended, its pods with it; returns its process id, if it ran.

    A cluster that doesn't end within 30 seconds is killed; its reaper then kills the pods.
    """
    pid = lock_holder(files.lock)
    if pid is None:
        return None
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    try:
        if lock_holder(files.lock) != pid:  # ended meanwhile: the descriptor may be another process's
            return pid
        for number, patience in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, _STOP_SECONDS)):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, number)
            if select.select([process], [], [], patience)[0]:
                break
        return pid
    finally:
        os.close(process)
