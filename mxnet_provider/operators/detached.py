"""A process that ends a job when the worker that was about to has died first.

Airflow kills a worker five seconds after it has signalled the end, whether or not the API server has answered. So
the worker starts this process before it asks. The process has a session of its own, which Airflow's signals to the
worker's process group don't reach, and waits for the worker's death; only then does it ask the API server itself.
Where a pod or a container is the worker, it dies with it, and the job's lease is what is left.
"""

import asyncio
import contextlib
import ctypes
import subprocess
import sys
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from mxnet_provider.job import holder, kill
from mxnet_provider.job.delivery import deliver
from mxnet_provider.job.job_ref import JobRef

if TYPE_CHECKING:
    from kubernetes.client import Configuration

_PR_SET_DUMPABLE: Final = 4
"""From <linux/prctl.h>."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Order to the process: what to do, and how to reach the cluster. It holds credentials."""

    ref: JobRef
    action: kill.Action
    propagation_policy: str
    of_try: str
    """The token of the try; a job in which no token of it stands is left alone."""
    tolerance: float
    """For how many seconds an API server that doesn't answer is asked again."""
    connection: dict[str, Any]
    """The arguments of `kube_configuration.load`."""


class DetachedProcess:
    """The process, from its start to the moment in which it turns out not to be needed.

    It reads the order from a pipe, so that no command line, environment or file has the credentials, and takes
    the pipe's end for its signal to begin: that comes when this process has died, however it died.

    Args:
        order: What is to be done.

    Raises:
        OSError: no process could be started.
    """

    def __init__(self, order: Order) -> None:
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-P", "-m", __spec__.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._pipe.write(msgspec.json.encode(order) + b"\n")
        self._pipe.flush()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def dismiss(self) -> None:
        """End it: there is nothing left for it to do."""
        self._process.kill()
        with contextlib.suppress(OSError):
            self._pipe.close()
        self._process.wait()

    def release(self) -> None:
        """Let it begin at once, though this process lives on."""
        with contextlib.suppress(OSError):
            self._pipe.close()

    def wait(self) -> None:
        """Wait until it has ended."""
        self._process.wait()

    @property
    def _pipe(self) -> IO[bytes]:
        if self._process.stdin is None:
            raise RuntimeError("the process was started without a pipe")
        return self._process.stdin


async def carry_out(order: Order) -> kill.Ending | None:
    """End the job, if it still is the try's; None where the API server did not answer for as long as is borne.

    Of a job without a token nobody knows who waits for it by now, so it is left alone.
    """
    from mxnet_provider.hooks import kube_configuration  # noqa: PLC0415 - takes seconds, and is rarely needed
    from mxnet_provider.hooks.job_client import AsyncJobClient  # noqa: PLC0415

    class Client(AsyncJobClient):
        async def _configuration(self, *, anew: bool) -> "Configuration":  # noqa: ARG002 - files are read anew each time
            return await asyncio.to_thread(partial(kube_configuration.load, **order.connection))

    holds = holder.written_by_try(order.of_try)
    return await deliver(
        order.ref,
        partial(kill.request, uid=order.ref.uid, action=order.action, holds=holds),
        lambda: Client(say=lambda _text: None),
        propagation_policy=order.propagation_policy,
        seconds=order.tolerance,
    )


def main() -> None:
    """Read the order, wait for the end of the pipe, and carry the order out."""
    _close_memory()
    text = sys.stdin.buffer.readline()
    sys.stdin.buffer.read()
    if text.endswith(b"\n"):  # else who wrote it died over it
        asyncio.run(carry_out(msgspec.json.decode(text, type=Order)))


def _close_memory() -> None:
    """Let no other process of this user read the credentials in this one's memory, as Airflow does for its tasks'."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    main()
