"""Allocation of devices to containers, and the environment variables that limit a process to its devices."""

from collections import Counter
from collections.abc import Iterable, Mapping

from mxnet_operator.local.kubelet.device_discovery import AMD, CUDA, HIP, ROCR, DeviceKind

Taken = Mapping[str, tuple[str, ...]]
"""Ids of allocated devices, by resource."""

_NONE = "-1"
"""Value that the runtimes of both vendors take for no device."""


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
        """Release the devices of this container."""
        self._taken.pop(holder, None)

    def variables(self, taken: Taken) -> dict[str, str]:
        """Build the environment variables that show a container's process its devices and no others."""
        cuda = [name for resource, ids in taken.items() if resource.startswith("nvidia.com/") for name in ids if name]
        variables = {CUDA: ",".join(cuda)}
        if AMD in self._kinds:
            amd = [name for name in taken.get(AMD, ()) if name]
            variables[ROCR] = ",".join(amd) or _NONE
            variables[HIP] = ",".join(map(str, range(len(amd)))) or _NONE  # it counts what ROCR leaves
        return variables

    def _free(self, resource: str, holder: str, kept: tuple[int, ...]) -> list[int]:
        """List the indexes of free devices, once for each share, the least used first."""
        kind = self._kinds[resource]
        used = Counter(kept)
        for other, taken in self._taken.items():
            if other != holder:
                used.update(taken.get(resource, ()))
        slots = [(use, index) for index in range(len(kind.ids)) for use in range(used[index], kind.share)]
        return [index for _, index in sorted(slots)]
