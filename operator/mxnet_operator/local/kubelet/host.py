"""What the pods of one node share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mxnet_operator.kube.client import Client
from mxnet_operator.local.images import BuildProgress, Image, ReadyImage
from mxnet_operator.local.kubelet.changes import Changes
from mxnet_operator.local.kubelet.devices import Devices
from mxnet_operator.local.kubelet.events import EventRecorder
from mxnet_operator.local.kubelet.log_source import Logs
from mxnet_operator.local.kubelet.processes import Processes
from mxnet_operator.local.kubelet.timing import Timing


class Images(Protocol):
    """Where images come from: the ImageStore."""

    def resolve(self, name: str) -> Image | None:
        """The image of that name, None where it isn't known."""
        ...

    def how_to_add(self, name: str) -> str:
        """What to tell somebody who asked for an image that isn't known."""
        ...

    def ready(self, image: Image) -> bool:
        """Whether `ensure` returns at once."""
        ...

    async def ensure(self, image: Image, progress: Callable[[BuildProgress], None] | None = None) -> ReadyImage:
        """Build the image unless it is there."""
        ...


@dataclass(frozen=True, slots=True)
class Host:
    """The node's own things: folders, processes, devices, logs, and its way to the API server."""

    client: Client
    node_name: str
    folder: Path
    """Holds a folder for each pod, named by its uid."""
    images: Images
    processes: Processes
    devices: Devices
    logs: Logs
    events: EventRecorder
    timing: Timing
    pods_of: Callable[[str], tuple[dict[str, Any], ...]]
    """The pods of a namespace, as far as the kubelet's cache has heard."""
    pods_changed: Changes
