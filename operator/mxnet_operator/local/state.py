"""State of a home's cluster for other processes: whether it runs, where, and since when."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mxnet_operator.local.claims import lock_holder
from mxnet_operator.local.home import ClusterFiles, write_private


class ClusterState(msgspec.Struct, frozen=True):
    """State file, written once a cluster is ready; kept at its end, so that the next one reuses its port."""

    pid: int
    started_at: float
    """Start of the cluster, as Unix time in seconds."""
    port: int
    subnet: str
    control_plane: str = "local"
    """Name of the control plane, as in `ClusterOptions`."""
    programs: tuple[int, ...] = ()
    """Process ids of the control plane's programs; empty for the in-memory API server."""
    pages_port: int = 0
    """Port of the job pages."""
    stopping: bool = False
    """Whether it has begun to stop."""

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.port}"


@dataclass(frozen=True)
class ProcessUse:
    """Memory and CPU usage of a process."""

    resident_bytes: int
    cpu_seconds: float


def write_state(files: ClusterFiles, state: ClusterState) -> None:
    """Replace the state file."""
    write_private(files.state, msgspec.json.encode(state))


def last_state(files: ClusterFiles) -> ClusterState | None:
    """Read the state of the last cluster of this home, running or not."""
    try:
        return msgspec.json.decode(files.state.read_bytes(), type=ClusterState)
    except (OSError, msgspec.DecodeError):
        return None


def running_state(files: ClusterFiles) -> ClusterState | None:
    """Read the state of the running cluster; None where none is ready, or it is stopping."""
    pid = lock_holder(files.lock)
    state = last_state(files)
    return state if pid is not None and state is not None and state.pid == pid and not state.stopping else None


def process_use(pid: int) -> ProcessUse:
    """Read the memory and CPU usage of a process from the kernel.

    Raises:
        OSError: there is no such process.
    """
    resident_pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(times[11]) + int(times[12])
    return ProcessUse(resident_pages * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK"))


def uptime(state: ClusterState) -> float:
    """Return the seconds since the cluster became ready."""
    return max(0.0, time.time() - state.started_at)
