"""Process groups of containers: start them, wait for their end, and kill what is left of them."""

import asyncio
import contextlib
import hashlib
import marshal
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mxnet_operator.local.kubelet import mounting, reaper
from mxnet_operator.local.kubelet.reaper import CLUSTER_MARKER, CONTAINER_MARKER, REAPER_MARKER, kill_marked, marked

VMSTAT = Path("/proc/vmstat")
_READ = 64 * 1024
_REAPER_TAKES = 5.0
_POLL_SECONDS = 0.05
_NOT_FOR_THE_REAPER = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def cluster_id(folder: Path) -> str:
    """Return the id that marks every process of the kubelet with this folder, across its restarts."""
    return hashlib.sha256(str(folder.absolute().resolve()).encode()).hexdigest()[:32]


def oom_kills() -> int:
    """Return how many processes the kernel has killed for want of memory since it booted; 0 where it doesn't tell."""
    try:
        lines = VMSTAT.read_text("ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def left_over(folder: Path) -> list[int]:
    """List running processes of containers of a kubelet with this folder that has ended."""
    return sorted(marked(CLUSTER_MARKER, cluster_id(folder)))


class Mount(NamedTuple):
    """Mount that a container's processes see, and no others."""

    inside: str
    real: str
    read_only: bool


class MountFailedError(Exception):
    """A container's mounts can't be made."""


class Processes:
    """Processes of one cluster, and the reaper that kills them if this process dies."""

    def __init__(self, cluster_id: str, link: Path | None = None) -> None:
        """`link` is removed by the reaper if this process dies."""
        self.cluster_id = cluster_id
        self._link = link
        self._groups: set[int] = set()
        self._reaper: subprocess.Popen[bytes] | None = None
        self._probe: asyncio.Task[str] | None = None

    async def why_no_mounts(self) -> str:
        """Return why this user can't give a process mounts of its own on this machine; empty where it can."""
        if self._probe is None:
            self._probe = asyncio.create_task(asyncio.to_thread(_why_no_mounts))
        return await asyncio.shield(self._probe)

    async def start(self) -> None:
        """Kill the processes of an earlier run of this cluster, and start the reaper."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REAPER_TAKES):
                await self._last_reaper_gone()
        await asyncio.to_thread(kill_marked, CLUSTER_MARKER, self.cluster_id)
        self._start_reaper()

    async def stop(self) -> None:
        """Kill every process that still runs, and end the reaper."""
        await asyncio.to_thread(kill_marked, CLUSTER_MARKER, self.cluster_id)
        if self._reaper is not None:
            self._reaper.kill()
            _close_pipe(self._reaper)
            self._reaper.wait()
            self._reaper = None

    def spawn(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        container_id: str,
        *,
        mounts: Sequence[Mount] = (),
        scratch: Path = Path(),
    ) -> "ContainerProcess":
        """Start a program in a session of its own, with its output in one pipe.

        With `mounts`, it has started only when `ContainerProcess.started` returns. `scratch` is an empty folder.

        Raises:
            OSError: it can't be started, as execve says.
        """
        marks = {CLUSTER_MARKER: self.cluster_id, CONTAINER_MARKER: container_id}
        kills = oom_kills()
        reading, writing = os.pipe()
        status: tuple[int, ...] = ()
        argv, variables = list(argv), dict(environment)
        if mounts:
            status = os.pipe()
            # They are meant for the program, and would change how this interpreter starts.
            apart = {name: variables.pop(name) for name in environment if name.startswith(("LD_", "LC_"))}
            argv = _with_mounts(argv, mounts, scratch, folder=folder, variables=apart, status=status[1])
        try:
            process = subprocess.Popen(
                argv,
                cwd=folder if not mounts else "/",
                env={**variables, **marks},
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=status[1:],
            )
        except BaseException:
            for each in (reading, *status[:1]):
                os.close(each)
            raise
        finally:
            for each in (writing, *status[1:]):
                os.close(each)
        self._groups.add(process.pid)
        self._tell(b"+%d\n" % process.pid)
        return ContainerProcess(process, reading, container_id, kills, self._ended, status=next(iter(status), None))

    async def _last_reaper_gone(self) -> None:
        """Wait for the reaper of an earlier run, which would kill this run's processes too."""
        while await asyncio.to_thread(marked, REAPER_MARKER, self.cluster_id):  # noqa: ASYNC110 - no child of ours
            await asyncio.sleep(_POLL_SECONDS)

    def _ended(self, group: int) -> None:
        self._groups.discard(group)
        self._tell(b"-%d\n" % group)

    def _start_reaper(self) -> None:
        # It inherits the blocked signals: what is meant for the cluster must never end it first.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_FOR_THE_REAPER)
        try:
            self._reaper = subprocess.Popen(
                [sys.executable, "-I", "-S", reaper.__file__, self.cluster_id, str(self._link or "")],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={REAPER_MARKER: self.cluster_id},
                start_new_session=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _tell(self, line: bytes) -> None:
        if self._reaper is None or self._reaper.stdin is None:
            return
        try:
            os.write(self._reaper.stdin.fileno(), line)
        except BrokenPipeError:  # somebody killed the reaper: it has killed nothing, start another
            _close_pipe(self._reaper)
            self._reaper.wait()
            self._start_reaper()
            if self._reaper.stdin is not None:
                os.write(self._reaper.stdin.fileno(), b"".join(b"+%d\n" % group for group in self._groups))


class ContainerProcess:
    """Running container: the program that was started and its descendants.

    As in a container, everything else dies with the first process.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        output: int,
        container_id: str,
        kills: int,
        ended: Callable[[int], None],
        *,
        status: int | None = None,
    ) -> None:
        """`kills` is what `oom_kills` returned before the process started, `status` the pipe of `mounting`."""
        self._process = process
        self._status = status
        self._output = output
        self._container_id = container_id
        self._ended = ended
        self._oom_kills = kills
        self._is_killed_by_us = False
        self.is_out_of_memory = False
        """Whether it was killed, not by us, and the kernel has killed for want of memory since its start."""
        self.most_memory = 0
        """Most resident memory that it had, in KiB; known once it has ended."""

    @property
    def pid(self) -> int:
        """Process id, which is also that of the group."""
        return self._process.pid

    async def started(self) -> None:
        """Wait until the program has started.

        Raises:
            OSError: it can't be started, as execve says.
            MountFailedError: a mount can't be made.
        """
        if self._status is None:
            return
        status, self._status = self._status, None
        _raise_failure(await asyncio.to_thread(_read_to_end, status))

    def signal_group(self, number: int) -> None:
        """Send a signal to the whole group; do nothing once it has ended."""
        if self._process.returncode is None:
            self._is_killed_by_us |= number == signal.SIGKILL
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    async def wait(self, output: Callable[[bytes], None], drain: float) -> int:
        """Pass on the output until the program ends; returns its exit status as Popen does (-9: killed by SIGKILL).

        When it returns no process of the container is left. `drain` limits, in seconds, the wait for last output
        that a process which hid from us keeps from ending.
        """
        loop = asyncio.get_running_loop()
        os.set_blocking(self._output, False)
        exhausted = asyncio.Event()

        def readable() -> None:
            try:
                data = os.read(self._output, _READ)
            except BlockingIOError:
                return
            if data:
                output(data)
            else:
                loop.remove_reader(self._output)
                exhausted.set()

        loop.add_reader(self._output, readable)
        try:
            status = await self._exit()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(exhausted.wait(), drain)
            return status
        finally:
            loop.remove_reader(self._output)
            os.close(self._output)

    async def _exit(self) -> int:
        await _ended(self._process)
        # Until it is waited for, the process id and the group's are still its own: this can hit nobody else.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.to_thread(kill_marked, CONTAINER_MARKER, self._container_id)
        _, end, usage = os.wait4(self._process.pid, 0)  # noqa: ASYNC222 - it has ended
        self._process.returncode = status = os.waitstatus_to_exitcode(end)
        self.most_memory = usage.ru_maxrss
        killed = status == -signal.SIGKILL and not self._is_killed_by_us
        self.is_out_of_memory = killed and oom_kills() > self._oom_kills
        self._ended(self._process.pid)
        return status


def _with_mounts(
    argv: list[str],
    mounts: Sequence[Mount],
    scratch: Path,
    *,
    folder: Path,
    variables: Mapping[str, str],
    status: int,
) -> list[str]:
    plan = {
        "mounts": [tuple(each) for each in mounts],
        "scratch": str(scratch),
        "folder": str(folder),
        "variables": dict(variables),
        "status": status,
    }
    return [sys.executable, "-I", "-S", mounting.__file__, marshal.dumps(plan).hex(), *argv]


def _why_no_mounts() -> str:
    """Try it, with a mount whose place is missing. Blocks."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Mount(f"/{Path(scratch).name}", scratch, read_only=True)
        reading, writing = os.pipe()
        try:
            try:
                argv = _with_mounts(["true"], [place], Path(scratch), folder=Path("/"), variables={}, status=writing)
                tried = subprocess.run(
                    argv, check=False, pass_fds=[writing], env={"PATH": os.defpath}, capture_output=True
                )
            finally:
                os.close(writing)
            _raise_failure(os.read(reading, _READ))
        except (OSError, MountFailedError) as error:
            return str(error)
        finally:
            os.close(reading)
    return "" if tried.returncode == 0 else tried.stderr.decode(errors="replace").strip()


def _read_to_end(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as pipe:
        return pipe.read()


def _raise_failure(status: bytes) -> None:
    """Raise what `mounting` reports; do nothing where it reports nothing."""
    if not status:
        return
    what, number, path = marshal.loads(status)  # noqa: S302 - from `mounting`
    if what == "mount":
        raise MountFailedError(f"{path}: {os.strerror(number).lower()}")
    raise OSError(number, os.strerror(number))


def _close_pipe(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


async def _ended(process: subprocess.Popen[bytes]) -> None:
    """Wait until a child process has ended, without reaping it."""
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    loop.add_reader(descriptor, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
