"""What tasks of the local cluster wait for: changes, a stop, and delays and time limits, which tests shorten."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar


class Changes:
    """Change notification: check first, then call `wait`, with no await in between."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    def wait(self) -> Coroutine[Any, Any, object]:
        """Wait for the next ring after this call, even where a task that was made of it begins to run later."""
        return self._event.wait()


T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 - not an error: it ends what is being prepared
    """A stop was requested during a wait."""


class Stop:
    """Stop request; it ends every wait under `unless`."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def request(self) -> None:
        """Request a stop, which can't be withdrawn."""
        self._event.set()

    async def unless(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and return its result; cancel it if a stop is requested first.

        Raises:
            Stopped: a stop was requested.
        """
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            task.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)
        if self.requested:  # asked after the last wait, so that whoever goes on at once need not ask again
            raise Stopped
        return task.result()


@dataclass(frozen=True, slots=True)
class Timing:
    """Delays and time limits in seconds; the defaults are the real kubelet's where it has the same ones."""

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
    api_retry: float = 1.0
    api_retry_limit: float = 30.0
