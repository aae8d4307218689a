"""Reaper: a process that outlives the kubelet and kills the processes that it leaves behind.

Run as `python -I -S reaper.py CLUSTER_ID LINK` with a pipe as its input, whose other end the kubelet holds: "+GROUP"
and "-GROUP" lines tell it the process groups that run. When the pipe ends, whatever ended the kubelet, every process of
the cluster dies, also processes that have left their group: they carry the cluster's marker in their environment.
Standard library only, as little of it as possible: it stays in memory for as long as the cluster runs.
"""

import os
import signal
import sys
import time

CLUSTER_MARKER = "MXJOB_CLUSTER_ID"
CONTAINER_MARKER = "MXJOB_CONTAINER_ID"
REAPER_MARKER = "MXJOB_REAPER_OF"


def marked(variable: str, value: str) -> list[int]:
    """List the live processes, other than this one, whose initial environment had this value."""
    wanted = f"\0{variable}={value}\0".encode()
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would double this process's memory
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                environment = file.read()
        except OSError:
            continue
        if wanted in b"\0" + environment + b"\0":
            found.append(int(name))
    return found


def kill_marked(variable: str, value: str, rounds: int = 20) -> bool:
    """Kill every process with this mark until none is left; false if some are left after all rounds. Blocks."""
    for _ in range(rounds):
        processes = marked(variable, value)
        if not processes:
            return True
        for process in processes:
            try:  # noqa: SIM105 - contextlib isn't worth its memory here
                os.kill(process, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.02)
    return not marked(variable, value)


def main() -> None:
    """Wait for the kubelet's end, then kill its processes and remove its link."""
    cluster, link = sys.argv[1:3]
    groups: set[int] = set()
    pending = b""
    while data := os.read(0, 65536):
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
    for group in groups:
        try:  # noqa: SIM105
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass
    # A child that was between its fork and its exec when the kubelet died has no mark yet: look more than once.
    for _ in range(3):
        kill_marked(CLUSTER_MARKER, cluster)
        time.sleep(0.2)
    if link:
        try:  # noqa: SIM105
            os.unlink(link)  # noqa: PTH108
        except OSError:
            pass


if __name__ == "__main__":
    main()
