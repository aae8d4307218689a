"""Callbacks by which clients and work queues report what they do, for metrics."""

from collections.abc import Callable

RequestObserver = Callable[[str, str, str], None]
"""Callback for each request sent: method, the server's host and port, and the HTTP status or `<error>`."""


class QueueObserver:
    """Callbacks for the keys of a work queue, which do nothing here; times are in seconds."""

    def added(self) -> None:
        """Count a key added to the queue."""

    def taken(self, waited: float) -> None:
        """Record how long a key was queued before a worker took it."""

    def finished(self, worked: float) -> None:
        """Record how long a worker processed a key."""

    def retried(self) -> None:
        """Count a key requeued because its reconciliation failed."""
