"""The GPUs of this machine: how many there are, and which container has which."""

import re
import subprocess
from pathlib import Path

GPU = "nvidia.com/gpu"


def detect_gpus() -> int:
    """How many NVIDIA GPUs this machine has, by its device files, else by what `nvidia-smi -L` lists."""
    devices = sum(1 for path in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name))
    if devices:
        return devices
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(1 for line in listed.splitlines() if line.startswith("GPU "))


class Devices:
    """Which GPU belongs to which container, by index."""

    def __init__(self, count: int) -> None:
        self._holders: list[str | None] = [None] * count

    def take(self, holder: str, count: int) -> list[int] | None:
        """`count` devices for this container, the ones it has already or free ones; None if too few are free."""
        mine = [index for index, other in enumerate(self._holders) if other == holder]
        free = [index for index, other in enumerate(self._holders) if other is None]
        if len(mine) + len(free) < count:
            return None
        chosen = (mine + free)[:count]
        for index in chosen:
            self._holders[index] = holder
        return chosen

    def free(self, holder: str) -> None:
        """Take back what this container has."""
        self._holders = [None if other == holder else other for other in self._holders]
