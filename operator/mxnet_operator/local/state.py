"""What is known of a home's cluster from outside of it: whether it runs, where, and since when."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mxnet_operator.local.claims import lock_holder
from mxnet_operator.local.home import ClusterFiles, write_private


class ClusterState(msgspec.Struct, frozen=True):
    """Written by a cluster once it is ready; it stays behind, so that the next one takes the same port again."""

    pid: int
    started_at: float
    """Unix time."""
    port: int
    subnet: str
    control_plane: str = "local"
    """As in `ClusterOptions`."""
    programs: tuple[int, ...] = ()
    """The process ids of the control plane's programs, where it isn't in the cluster's own process."""
    pages_port: int = 0
    """Where the jobs' pages are served."""

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class ProcessUse:
    """What a process has used so far."""

    resident_bytes: int
    cpu_seconds: float


def write_state(files: ClusterFiles, state: ClusterState) -> None:
    """Replace the state."""
    write_private(files.state, msgspec.json.encode(state))


def last_state(files: ClusterFiles) -> ClusterState | None:
    """The state that the last cluster of this home wrote, be it running or not."""
    try:
        return msgspec.json.decode(files.state.read_bytes(), type=ClusterState)
    except (OSError, msgspec.DecodeError):
        return None


def running_state(files: ClusterFiles) -> ClusterState | None:
    """The state of the cluster that is up; None where none is, or it is still starting."""
    pid = lock_holder(files.lock)
    state = last_state(files)
    return state if pid is not None and state is not None and state.pid == pid else None


def process_use(pid: int) -> ProcessUse:
    """What the kernel counts for a process.

    Raises:
        OSError: there is no such process.
    """
    resident_pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(times[11]) + int(times[12])
    return ProcessUse(resident_pages * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK"))


def uptime(state: ClusterState) -> float:
    """Seconds since the cluster became ready."""
    return max(0.0, time.time() - state.started_at)
