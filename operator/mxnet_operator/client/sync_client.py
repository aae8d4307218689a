"""The client for notebooks and scripts: `AsyncMXJobClient` without the `await`."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from mxnet_operator.client.async_client import AsyncMXJobClient, JobRef, Manifest
from mxnet_operator.client.job_status import JobStatus
from mxnet_operator.client.jobs import RETRY_SECONDS
from mxnet_operator.description import MXJobDescription

T = TypeVar("T")
_PAUSE_FOR_A_STEP: Final = 0.01
"""Seconds between two looks at a step that was cancelled."""
_CLOSED: Final = "the client is closed"


class MXJobClient:
    """A client of the cluster that a kubeconfig names, or that this program runs in.

    It runs an event loop of its own in a thread, so that it works in a notebook, which has one already. Use it in
    `with`, or close it; jobs go on. Ctrl-C ends the waiting, not the job. Threads may share it: a call raises
    RuntimeError once the client is closed, also one that waits in another thread.

    Args:
        kubeconfig: A file; if not given `$KUBECONFIG`, `~/.kube/config`, or the pod's service account.
        context: A context of the kubeconfig.
        namespace: Where jobs are whose description, manifest or caller names none; if not given the context's.
        retry_timeout: Retry budget in seconds, for a server that can't be reached.
    """

    def __init__(
        self,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        namespace: str | None = None,
        retry_timeout: float = RETRY_SECONDS,
    ) -> None:
        self._async = AsyncMXJobClient(
            kubeconfig=kubeconfig, context=context, namespace=namespace, retry_timeout=retry_timeout
        )
        self._is_closed = False
        self._entry = threading.RLock()
        """Held while a call is handed to the loop, and while the client is closed: no call comes after the last one."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mxjob-client", daemon=True)
        self._thread.start()
        try:
            self._run(self._async.__aenter__())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Return the client, which is open already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections; jobs go on."""
        self.close()

    def close(self) -> None:
        """Close the connections; calls that wait in other threads raise RuntimeError, jobs go on."""
        self._is_closed = True
        with self._entry:
            if self._thread.is_alive():
                asyncio.run_coroutine_threadsafe(self._end_calls(), self._loop).result()
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()

    def submit(
        self,
        job: MXJobDescription | None = None,
        *,
        manifest: Manifest | None = None,
        allow_unknown_fields: bool = False,
    ) -> JobStatus:
        """Create a job; as `AsyncMXJobClient.submit`."""
        return self._run(self._async.submit(job, manifest=manifest, allow_unknown_fields=allow_unknown_fields))

    def manifest(
        self,
        job: MXJobDescription | None = None,
        manifest: Manifest | None = None,
        *,
        allow_unknown_fields: bool = False,
    ) -> dict[str, Any]:
        """Return the MXJob that `submit` would send; as `AsyncMXJobClient.manifest`."""
        return self._async.manifest(job, manifest, allow_unknown_fields=allow_unknown_fields)

    def get(self, job: JobRef) -> JobStatus:
        """Read a job as it is now; as `AsyncMXJobClient.get`."""
        return self._run(self._async.get(job))

    def wait(self, job: JobRef, *, timeout: float | None = None, check: bool = True) -> JobStatus:
        """Wait until a job has finished; as `AsyncMXJobClient.wait`."""
        return self._run(self._async.wait(job, timeout=timeout, check=check))

    def logs(self, job: JobRef, *, replica: str | None = None, follow: bool = True) -> Iterator[str]:
        """Yield the lines of a replica's log; as `AsyncMXJobClient.logs`."""
        lines = self._async.logs(job, replica=replica, follow=follow)
        try:
            with contextlib.suppress(StopAsyncIteration):
                while True:
                    yield self._run(_next(lines))
        finally:
            try:
                self._run(_close(lines))
            except RuntimeError:
                if not self._is_closed:  # closing the client closes its logs
                    raise

    def result(self, job: JobRef, *, timeout: float | None = None) -> Any:
        """Wait for a job to succeed, and return its result; as `AsyncMXJobClient.result`."""
        return self._run(self._async.result(job, timeout=timeout))

    def metrics(self, job: JobRef, *, replica: str | None = None) -> dict[str, Any]:
        """Read the figures in a replica's log so far; as `AsyncMXJobClient.metrics`."""
        return self._run(self._async.metrics(job, replica=replica))

    def delete(self, job: JobRef, *, wait: bool = True) -> bool:
        """Delete a job with its pods; as `AsyncMXJobClient.delete`."""
        return self._run(self._async.delete(job, wait=wait))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._entry:
            if self._is_closed:
                work.close()
                raise RuntimeError(_CLOSED)
            running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except concurrent.futures.CancelledError:
            raise RuntimeError(_CLOSED) from None
        except BaseException:
            running.cancel()
            raise

    async def _end_calls(self) -> None:
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for each in calls:
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._async.__aexit__()


async def _next(lines: Any) -> str:
    line: str = await anext(lines)
    return line


async def _close(lines: Any) -> None:
    """Close the generator, once a step of it that was cancelled, as by Ctrl-C, has ended."""
    while lines.ag_running:  # noqa: ASYNC110 - a generator has no event for it
        await asyncio.sleep(_PAUSE_FOR_A_STEP)
    await lines.aclose()


__all__ = ["MXJobClient"]
