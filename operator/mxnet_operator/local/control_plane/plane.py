"""Interface of a local cluster's control plane."""

import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from mxnet_operator.local.apiserver.logs import LogSource


@dataclass(frozen=True)
class ControlPlane:
    """Running control plane, which the home's kubeconfig names."""

    port: int
    use_logs: Callable[[LogSource], None]
    """Sets the source of container logs."""
    died: Callable[[], Coroutine[Any, Any, None]]
    """Waits until a part of the control plane has ended, then returns or raises."""
    programs: tuple[int, ...] = ()
    """Process ids of its programs."""
    kubelet_context: ssl.SSLContext | None = None
    """TLS context of the kubelet's log server, if the control plane reads logs over HTTPS."""
