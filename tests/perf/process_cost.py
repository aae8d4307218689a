"""What a process has cost so far, as Linux' /proc tells."""

import os
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
