"""Delays and time limits of the kubelet, which tests shorten."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Delays and time limits in seconds; the defaults are the real kubelet's where it has the same ones."""

    crash_backoff: float = 10.0
    """Delay before the first restart of a container; doubles with each further one."""
    crash_backoff_limit: float = 300.0
    crash_backoff_reset: float = 600.0
    """Running time after which a container's back-off is reset."""
    image_retry: float = 5.0
    """Delay between two lookups of an unknown image, each of which reads one small file."""
    setup_retry: float = 10.0
    """Delay between two attempts to prepare a container after a full disk, a missing ConfigMap, a failed build."""
    name_notice: float = 5.0
    """Wait for the addresses of names in a pod's environment after which an event is written."""
    name_limit: float = 60.0
    """Wait for the pod of a name, after which the name is left without an address."""
    stop_grace: float = 2.0
    """Grace period between SIGTERM and SIGKILL when the whole node stops."""
    drain: float = 1.0
    """Time limit for reading the last output of a container whose processes have ended."""
    node_heartbeat: float = 240.0
    lease_renewal: float = 10.0
    api_retry: float = 1.0
    api_retry_limit: float = 30.0
