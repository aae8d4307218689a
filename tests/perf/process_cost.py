"""What a process has cost so far, as Linux' /proc tells, and what it has asked a local API server for."""

import os
from collections import Counter
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu(pid):
    """CPU seconds, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak(pid):
    """The most memory that it had, in MB."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def count_requests(server):
    """A counter of the requests that a local API server gets from now on, by method and resource."""
    asked, answer = Counter(), server._handle

    async def counting(request):
        parts = request.path.split("/")
        resource = parts[parts.index("namespaces") + 2] if "namespaces" in parts else parts[-1]
        asked[f"{request.method} {'log' if request.path.endswith('/log') else resource}"] += 1
        return await answer(request)

    for route in server._runner.app.router.routes():
        route._handler = counting
    return asked
