"""Resources that the pods of one node share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mxnet_operator.kube.client import Client
from mxnet_operator.local.events import EventRecorder
from mxnet_operator.local.images.store import ImageStore
from mxnet_operator.local.kubelet.devices import Devices
from mxnet_operator.local.kubelet.logs import Logs
from mxnet_operator.local.kubelet.loopback import PodIndex
from mxnet_operator.local.kubelet.processes import Processes
from mxnet_operator.local.kubelet.short_path import ShortPath
from mxnet_operator.local.kubelet.volume_claims import VolumeClaims
from mxnet_operator.local.waiting import Changes, Timing


@dataclass(frozen=True, slots=True)
class Host:
    """Resources of the node: folder, processes, devices, logs, API client."""

    client: Client
    folder: Path
    """Folder with a folder for each pod, named by its uid."""
    short_path: ShortPath
    """Short path to the same folder."""
    images: ImageStore
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
