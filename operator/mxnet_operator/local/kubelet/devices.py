"""Devices of the node: NVIDIA's GPUs and MIG devices and those that are only counted, and which container has which.

What the driver's tool lists is narrowed down by `CUDA_VISIBLE_DEVICES`, which a batch system or the user has set for
this process.
"""

import logging
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

NVIDIA: Final = "nvidia.com/gpu"
CUDA: Final = "CUDA_VISIBLE_DEVICES"

_TOOL_SECONDS: Final = 10
_GPU: Final = re.compile(r"GPU (?P<index>\d+): .*\(UUID: (?P<uuid>[^)]+)\)")
_MIG: Final = re.compile(r"\s+MIG (?P<profile>\S+)\s+Device\s+\d+: \(UUID: (?P<uuid>[^)]+)\)")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """Devices that the node offers under one resource name."""

    resource: str
    ids: tuple[str, ...]
    """Ids as in the runtime's environment variable; empty for a device that is only counted."""
    share: int = 1
    """Containers that may share one device."""

    @property
    def amount(self) -> int:
        """Quantity that the node offers."""
        return len(self.ids) * self.share


@dataclass(frozen=True, slots=True)
class _Gpu:
    index: str
    uuid: str
    migs: tuple[tuple[str, str], ...] = ()
    """Profile and UUID of each MIG device."""


def device_kinds(
    environment: Mapping[str, str], *, gpus: int | None = None, share: int = 1, counts: Mapping[str, int] | None = None
) -> tuple[DeviceKind, ...]:
    """Find the devices that the node offers, by resource.

    `gpus` is the number of NVIDIA GPUs to offer, `counts` that of any resource, whether they exist or not; None: those
    found. `share` is how many times each GPU is offered. Blocks.
    """
    found = {kind.resource: kind for kind in _nvidia(environment)}
    wanted = {**(counts or {}), **({} if gpus is None else {NVIDIA: gpus})}
    for resource, count in wanted.items():
        ids = found[resource].ids if resource in found else ()
        found[resource] = DeviceKind(resource, (*ids[:count], *_counted(resource, environment, len(ids), count)))
    kinds = (replace(kind, share=share) if is_gpu(kind.resource) else kind for kind in found.values())
    return tuple(sorted((kind for kind in kinds if kind.ids), key=lambda kind: kind.resource))


def is_gpu(resource: str) -> bool:
    """Whether the resource is an NVIDIA GPU or a part of one."""
    return resource == NVIDIA or resource.startswith("nvidia.com/mig-")


def _counted(resource: str, environment: Mapping[str, str], there: int, wanted: int) -> Iterator[str]:
    """Yield ids of devices beyond the existing ones: numbers, unless they could be another user's devices."""
    limited = resource != NVIDIA or CUDA in environment
    if resource == NVIDIA and limited and wanted > there:
        _log.warning("%s: %d are offered, %d are there: the others are only counted", resource, wanted, there)
    yield from ("" if limited else str(number) for number in range(there, wanted))


def _nvidia(environment: Mapping[str, str]) -> Iterator[DeviceKind]:
    gpus = _listed() or [_Gpu(str(number), "") for number in range(_device_files())]
    visible = environment.get(CUDA)
    migs: dict[str, list[str]] = {}
    whole = []
    if visible is None:
        whole = [gpu.index for gpu in gpus if not gpu.migs]
        parts = [part for gpu in gpus for part in gpu.migs]
    else:
        parts = []
        for name in (each.strip() for each in visible.split(",")):
            gpu = next((each for each in gpus if name == each.index or _names(name, each.uuid)), None)
            part = next((each for one in gpus for each in one.migs if _names(name, each[1])), None)
            if part is not None:
                parts.append(part)
            elif gpu is not None and gpu.migs:
                parts += gpu.migs
            elif gpu is not None:
                whole.append(name)
            else:
                break  # as CUDA does: what comes after the first that is none is not visible either
    for profile, uuid in parts:
        migs.setdefault(f"nvidia.com/mig-{profile.replace('+', '.')}", []).append(uuid)
    yield DeviceKind(NVIDIA, tuple(dict.fromkeys(whole)))
    yield from (DeviceKind(resource, tuple(dict.fromkeys(ids))) for resource, ids in migs.items())


def _names(name: str, uuid: str) -> bool:
    """Whether a name is the device's UUID or a prefix of it."""
    return len(name) > len("GPU-") and uuid.startswith(name)


def _listed() -> list[_Gpu]:
    found: list[_Gpu] = []
    for line in _output("nvidia-smi", "-L").splitlines():
        if match := _GPU.match(line):
            found.append(_Gpu(match["index"], match["uuid"]))
        elif (match := _MIG.match(line)) and found:
            found[-1] = replace(found[-1], migs=(*found[-1].migs, (match["profile"], match["uuid"])))
    if found:  # CUDA's own way to /dev/nvidia-uvm is this setuid program, which has no effect in a user namespace
        _output("nvidia-modprobe", "-u", "-c", "0")
    return found


def _device_files() -> int:
    return sum(1 for path in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name))


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""


Taken = Mapping[str, tuple[str, ...]]
"""Ids of allocated devices, by resource."""


class Devices:
    """Allocator of the node's devices."""

    def __init__(self, kinds: Iterable[DeviceKind]) -> None:
        self._kinds = {kind.resource: kind for kind in kinds}
        self._taken: dict[str, dict[str, tuple[int, ...]]] = {}

    def take(self, holder: str, asked: Mapping[str, int]) -> Taken | None:
        """Allocate the requested devices to a container, its own or the least used; None if too few are free.

        Resources that are not devices of the node are ignored.
        """
        mine = self._taken.get(holder, {})
        chosen: dict[str, tuple[int, ...]] = {}
        for resource in sorted(asked.keys() & self._kinds.keys()):
            kept = mine.get(resource, ())[: asked[resource]]
            more = self._free(resource, holder, kept)[: asked[resource] - len(kept)]
            if len(kept) + len(more) < asked[resource]:
                return None
            chosen[resource] = (*kept, *more)
        self._taken[holder] = chosen
        return {
            resource: tuple(dict.fromkeys(self._kinds[resource].ids[index] for index in indexes))
            for resource, indexes in chosen.items()
        }

    def free(self, holder: str) -> None:
        self._taken.pop(holder, None)

    def variables(self, taken: Taken) -> dict[str, str]:
        cuda = [name for resource, ids in taken.items() if resource.startswith("nvidia.com/") for name in ids if name]
        return {CUDA: ",".join(cuda)}

    def _free(self, resource: str, holder: str, kept: tuple[int, ...]) -> list[int]:
        """List the indexes of free devices, once for each share, the least used first."""
        kind = self._kinds[resource]
        used = Counter(kept)
        for other, taken in self._taken.items():
            if other != holder:
                used.update(taken.get(resource, ()))
        slots = [(use, index) for index in range(len(kind.ids)) for use in range(used[index], kind.share)]
        return [index for _, index in sorted(slots)]
