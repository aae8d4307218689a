"""Client for notebooks and scripts: `AsyncMXJobClient` without the `await`."""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from mxnet_operator.client.async_client import AsyncMXJobClient, JobRef, Manifest
from mxnet_operator.client.job_status import JobStatus
from mxnet_operator.client.outage import RETRY_SECONDS
from mxnet_operator.description import MXJobDescription

T = TypeVar("T")
_PAUSE_FOR_A_STEP: Final = 0.01
"""Seconds between two looks at a step that was cancelled."""
_CLOSED: Final = "the client is closed"


class MXJobClient:
    """Client for MXJobs on the cluster of a kubeconfig, or of the pod that runs it.

    Use it in `with`, or call `close`. Jobs go on when the client is closed, and when Ctrl-C ends a call.
    It works in notebooks, and threads may share it. Calls on a closed client raise RuntimeError.

    Every method may raise ApiError (the server rejects the request) and ApiUnavailable (the server can't be reached)
    of `mxnet_operator.kube.errors`. Creating the client may raise CredentialsError.

    Args:
        kubeconfig: Kubeconfig file. Default: `$KUBECONFIG`, `~/.kube/config`, or the pod's service account.
        context: Context of the kubeconfig. Default: the current one.
        namespace: Namespace of jobs that name none. Default: the context's.
        retry_timeout: Seconds for which a request is repeated while the server can't be reached.
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
        """Create a job and return its status.

        A job without a name gets a unique one. If the server's reply is lost, the job is found again: never two.

        Args:
            job: Description of the job. Beside a manifest, it is merged over the manifest.
            manifest: A whole MXJob: a mapping, YAML text, or the path of a file.
            allow_unknown_fields: Accept fields that this release doesn't know, such as those of a newer Kubernetes.

        Raises:
            InvalidJobError: The job is not valid. The error has every mistake.
            JobExistsError: A job of this name exists.
        """
        return self._run(self._async.submit(job, manifest=manifest, allow_unknown_fields=allow_unknown_fields))

    def manifest(
        self,
        job: MXJobDescription | None = None,
        manifest: Manifest | None = None,
        *,
        allow_unknown_fields: bool = False,
    ) -> dict[str, Any]:
        """Return the manifest that `submit` would send, without sending it.

        Only a generated name ends differently each time. The arguments are those of `submit`.

        Raises:
            InvalidJobError: The job is not valid.
        """
        return self._async.manifest(job, manifest, allow_unknown_fields=allow_unknown_fields)

    def get(self, job: JobRef) -> JobStatus:
        """Return the current status of a job.

        Args:
            job: The job's name, or what `submit` returned.

        Raises:
            JobNotFoundError: The job doesn't exist.
        """
        return self._run(self._async.get(job))

    def wait(self, job: JobRef, *, timeout: float | None = None, check: bool = True) -> JobStatus:
        """Wait until a job has finished, and return its status.

        Args:
            job: The job's name, or what `submit` returned.
            timeout: Seconds to wait. The job goes on afterwards. Default: no limit.
            check: Raise JobFailedError if the job failed.

        Raises:
            JobFailedError: The job failed, and `check` is True.
            JobNotFoundError: The job doesn't exist, or was deleted meanwhile.
            TimeoutError: The job hasn't finished in time.
        """
        return self._run(self._async.wait(job, timeout=timeout, check=check))

    def logs(self, job: JobRef, *, replica: str | None = None, follow: bool = True) -> Iterator[str]:
        """Yield the lines of a replica's log, through restarts of the job, until the job has finished.

        Args:
            job: The job's name, or what `submit` returned.
            replica: Replica, such as `server-1`. Default: `worker-0`, in tuning `tuner-0`.
            follow: Wait for further lines. If False, only the lines so far.

        Raises:
            JobNotFoundError: The job doesn't exist, or was deleted meanwhile.
            LogIncompleteError: The last lines could not be received. It is raised after all others.
            ValueError: The job has no such replica.
        """
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
        """Wait until a job has succeeded, and return its result.

        The result is what Worker 0 (in tuning, the Tuner) wrote to /dev/termination-log, up to 256 KiB: parsed if it
        is JSON, else text, or None.

        Args:
            job: The job's name, or what `submit` returned.
            timeout: Seconds to wait. Default: no limit.

        Raises:
            JobFailedError: The job failed.
            JobNotFoundError: The job doesn't exist, or was deleted meanwhile.
            ResultLostError: The result is longer than 4 KiB, and the pod whose log has it is gone.
            TimeoutError: The job hasn't finished in time.
        """
        return self._run(self._async.result(job, timeout=timeout))

    def metrics(self, job: JobRef, *, replica: str | None = None) -> dict[str, Any]:
        """Return the metrics in a replica's log so far, each as a list with a value per epoch.

        `Epoch[3] Validation-accuracy=0.98` is in `validation_accuracy`, the Speedometer's speed in
        `samples_per_second`. `epochs` is the number of epochs so far, `accuracy` the last validation accuracy.

        Args:
            job: The job's name, or what `submit` returned.
            replica: Replica, such as `worker-1`. Default: `worker-0`, in tuning `tuner-0`.
        """
        return self._run(self._async.metrics(job, replica=replica))

    def delete(self, job: JobRef, *, wait: bool = True) -> bool:
        """Delete a job with its pods, and return whether it existed.

        Args:
            job: The job's name, or what `submit` returned.
            wait: Wait until its pods are gone.
        """
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
        await self._async.__aexit__()
        await self._loop.shutdown_asyncgens()


async def _next(lines: Any) -> str:
    line: str = await anext(lines)
    return line


async def _close(lines: Any) -> None:
    """Close the generator, once a step of it that was cancelled, as by Ctrl-C, has ended."""
    while lines.ag_running:  # noqa: ASYNC110 - a generator has no event for it
        await asyncio.sleep(_PAUSE_FOR_A_STEP)
    await lines.aclose()


__all__ = ["MXJobClient"]
