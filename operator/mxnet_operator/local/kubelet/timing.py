"""How long the kubelet waits for what; one place, so that tests can make it impatient."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations in seconds; the defaults are the real kubelet's where it has the same one."""

    crash_backoff: float = 10.0
    """Before the first restart of a container; doubles with each further one."""
    crash_backoff_limit: float = 300.0
    crash_backoff_reset: float = 600.0
    """A container that ran this long starts with the first back-off again."""
    image_retry: float = 5.0
    """Between two looks for an image that isn't known; looking costs one small file's reading."""
    setup_retry: float = 10.0
    """Between two attempts to prepare a container after a full disk, a missing ConfigMap, a failed build."""
    name_notice: float = 5.0
    """Waiting for the addresses of names in a pod's environment for longer than this becomes an event."""
    name_limit: float = 60.0
    """A name whose pod doesn't even exist after this stays as it is."""
    stop_grace: float = 2.0
    """Between SIGTERM and SIGKILL when the whole node stops."""
    drain: float = 1.0
    """For the last output of a container whose processes have ended."""
    node_heartbeat: float = 240.0
    lease_renewal: float = 10.0
    api_retry: float = 1.0
    api_retry_limit: float = 30.0
