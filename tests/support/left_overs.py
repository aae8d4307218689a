"""Nothing of a test run stays behind, however it ended: not a process, not a folder below /tmp, not a cgroup.

All that tests start carries the run's mark in its environment, and a process of its own holds the other end of a pipe:
when that closes, whatever ended pytest, it ends all that is marked. What it was killed with, the next run sweeps: a
mark says whose it is. Run as `python -I -S left_overs.py OWNER REAPER` this is that process.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

MARK = "MXJOB_TEST_OWNER"
_LEGIBLE = {"SPT_NOENV": "1"}
"""Keeps setproctitle, which Airflow's parts call, from writing a title over the environment that /proc shows."""
_FOLDER = "mxjob-test-"
_ORDERLY_SECONDS = 15
"""What a cluster and a control plane may take to stop by themselves, pods first."""
_watchers: list["subprocess.Popen[bytes]"] = []


def identity(pid: int) -> str:
    """The process as no other is called on this machine until it is booted again; "" where there is none."""
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        state, *fields = stat.rpartition(")")[2].split()
        return f"{_namespace()}-{pid}-{fields[18]}" if state not in "XZ" else ""
    return ""


def _namespace() -> int:
    """Containers may share /tmp, and can't tell each other's processes."""
    return Path("/proc/self/ns/pid").stat().st_ino


def folder_prefix() -> str:
    """How the names of this run's folders below /tmp begin; outside of a run nobody sweeps them."""
    owner = os.environ.get(MARK)
    return f"{_FOLDER}{owner}-" if owner else "mxjob-"


def mark() -> dict[str, str]:
    """The variables that a process needs which is started with an environment of its own."""
    return {MARK: os.environ[MARK], **_LEGIBLE}


def owned(owner: str, reaper: ModuleType) -> dict[int, str]:
    """The processes with an owner's mark, and their command lines."""
    found: dict[int, str] = {}
    for pid in reaper.marked(MARK, owner):
        with contextlib.suppress(OSError):
            found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return found


def end(owner: str, reaper: ModuleType) -> None:
    """End all that an owner left: in order, as far as it comes to an end by itself, and then by force."""

    def others() -> list[int]:  # a cluster's own reaper ends its pods, which carry no mark
        return [pid for pid, command in owned(owner, reaper).items() if "reaper.py" not in command]

    for number, seconds in ((signal.SIGTERM, _ORDERLY_SECONDS), (signal.SIGKILL, 1)):
        for pid in others():
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        until = time.monotonic() + seconds
        while others() and time.monotonic() < until:
            time.sleep(0.05)
    until = time.monotonic() + 5
    while owned(owner, reaper) and time.monotonic() < until:
        time.sleep(0.05)
    reaper.kill_marked(MARK, owner)
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}{owner}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    remove_cgroups(f"{_FOLDER}{owner}-")


def remove_cgroups(prefix: str) -> bool:
    """Remove the cgroups whose names begin so, as far as nothing runs in them; whether all are gone."""
    for top in Path("/sys/fs/cgroup").glob(f"*/{prefix}*"):
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
    return not any(Path("/sys/fs/cgroup").glob(f"*/{prefix}*"))


def dead_owners() -> set[str]:
    """The owners that are gone and whose processes or folders are still there."""
    here = f"{_namespace()}-"
    found = {owner for owner in _owners() if owner.startswith(here)}
    return {owner for owner in found if identity(int(owner.split("-")[1])) != owner}


def _owners() -> Iterator[str]:
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            for variable in environ.read_bytes().split(b"\0"):
                if match := re.fullmatch(rf"{MARK}=(\d+-\d+-\d+)", variable.decode(errors="replace")):
                    yield match[1]
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        if (match := re.match(rf"{_FOLDER}(\d+-\d+-\d+)-", folder.name)) and folder.stat().st_uid == os.geteuid():
            yield match[1]


def pytest_configure(config: Any) -> None:
    """Have what this run starts end with it."""
    if not config.option.collectonly:
        end_all_with_this()


def end_all_with_this() -> None:
    """Sweep what dead runs left, and have this one's processes watched; a run within a run belongs to the outer one."""
    if MARK in os.environ:
        return
    from mxnet_operator.local.kubelet import reaper

    for owner in dead_owners():
        end(owner, reaper)
    owner = identity(os.getpid())
    _watchers.append(
        subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, owner, reaper.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    )
    os.environ.update({MARK: owner, **_LEGIBLE})


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name what the tests should have stopped themselves."""
    if not _watchers:
        return
    from mxnet_operator.local.kubelet import reaper

    for pid, command in owned(os.environ[MARK], reaper).items():
        terminalreporter.write_line(f"left behind by a test, and ended now: {pid} {command}")


def pytest_unconfigure() -> None:
    """Let go of the pipe, and wait until nothing is left."""
    while _watchers:
        del os.environ[MARK]
        _watchers.pop().communicate()


def _watch(owner: str, reaper_file: str) -> None:
    spec = importlib.util.spec_from_file_location("reaper", reaper_file)
    assert spec is not None
    assert spec.loader is not None
    reaper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reaper)
    while os.read(0, 4096):
        pass
    end(owner, reaper)


if __name__ == "__main__":
    _watch(*sys.argv[1:])
