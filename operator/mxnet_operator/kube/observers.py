"""Where clients and queues say what they do, for whoever counts it; nothing here knows what counting is."""

from collections.abc import Callable

RequestObserver = Callable[[str, str, str], None]
"""Hears of each request sent: its method, the server's host and port, and the HTTP status or `<error>`."""


class QueueObserver:
    """Hears what happens to a work queue's keys; this one doesn't listen. Times are in seconds."""

    def added(self) -> None:
        """A key has come to be wanted."""

    def taken(self, waited: float) -> None:
        """A worker took a key that had been wanted for so long."""

    def finished(self, worked: float) -> None:
        """A worker has finished with a key after so long."""

    def retried(self) -> None:
        """A key is to come again because looking at it failed."""
