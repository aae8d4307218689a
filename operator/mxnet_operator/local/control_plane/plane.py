"""What the rest of a local cluster knows of its control plane."""

import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from mxnet_operator.local.apiserver.logs import LogSource


@dataclass(frozen=True)
class ControlPlane:
    """A running control plane; the home's kubeconfig leads to it."""

    port: int
    use_logs: Callable[[LogSource], None]
    """Tells it who has the logs of containers."""
    died: Callable[[], Coroutine[Any, Any, None]]
    """Returns or raises only when a part of it has ended."""
    programs: tuple[int, ...] = ()
    """The ids of its processes."""
    kubelet_context: ssl.SSLContext | None = None
    """How the kubelet serves its logs, if the control plane asks it over HTTPS."""
