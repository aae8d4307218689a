"""Resources that the pods of one node share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mxnet_operator.kube.client import Client
from mxnet_operator.local.events import EventRecorder
from mxnet_operator.local.images import BuildProgress, Image, ReadyImage
from mxnet_operator.local.kubelet.devices import Devices
from mxnet_operator.local.kubelet.logs import Logs
from mxnet_operator.local.kubelet.loopback import PodIndex
from mxnet_operator.local.kubelet.processes import Processes
from mxnet_operator.local.kubelet.short_path import ShortPath
from mxnet_operator.local.kubelet.volume_claims import VolumeClaims
from mxnet_operator.local.waiting import Changes, Timing


class Images(Protocol):
    """Interface of the image store."""

    def resolve(self, name: str) -> Image | None:
        """Find the image of that name; None where it isn't known."""
        ...

    def how_to_add(self, name: str) -> str:
        """Build the message for an unknown image."""
        ...

    def ready(self, image: Image) -> bool: ...

    async def ensure(self, image: Image, progress: Callable[[BuildProgress], None] | None = None) -> ReadyImage: ...


@dataclass(frozen=True, slots=True)
class Host:
    """Resources of the node: folder, processes, devices, logs, API client."""

    client: Client
    node_name: str
    folder: Path
    """Folder with a folder for each pod, named by its uid."""
    short_path: ShortPath
    """Short path to the same folder."""
    images: Images
    processes: Processes
    devices: Devices
    logs: Logs
    events: EventRecorder
    timing: Timing
    pods: PodIndex
    """Pods of the kubelet's cache."""
    service_of: Callable[[str, str], dict[str, Any] | None]
    """Finds a Service by namespace and name in the kubelet's cache."""
    pods_changed: Changes
    volume_claims: VolumeClaims
