"""Writer of a pod's status to the API server: only changes, one write at a time, with retries."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mxnet_operator.kube.backoff import Backoff
from mxnet_operator.kube.client import MERGE_PATCH, Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.local.changes import Changes
from mxnet_operator.local.kubelet.timing import Timing

_LOG = logging.getLogger(__name__)


class StatusWriter:
    """Writer of one pod's status, computed by `status`; `pod` returns the latest version of the pod's API object."""

    def __init__(
        self,
        client: Client,
        timing: Timing,
        pod: Callable[[], dict[str, Any]],
        status: Callable[[], dict[str, Any]],
    ) -> None:
        self._client = client
        self._pod = pod
        self._status = status
        self._backoff = Backoff(timing.api_retry, timing.api_retry_limit)
        self._changes = Changes()
        self._last: dict[str, Any] = {}
        self._wanted = 0
        self._done = 0
        self._closed = False

    def changed(self) -> None:
        """Notify the writer of a possible change of the status."""
        self._wanted += 1
        self._changes.ring()

    def close(self) -> None:
        """Stop writing, since the pod no longer exists."""
        self._closed = True
        self._changes.ring()

    async def run(self) -> None:
        """Write every change of the status, until closed or cancelled."""
        while not self._closed:
            if self._done == self._wanted:
                await self._changes.wait()
            else:
                await self._retried(self._write)

    async def written(self) -> None:
        """Wait until every change is written, or the writer is closed."""
        while self._done != self._wanted and not self._closed:
            await self._changes.wait()

    async def confirm_deletion(self) -> None:
        """Delete the pod from the API, by its uid, once its processes have ended."""
        metadata = self._pod()["metadata"]
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": metadata["uid"]},
        }
        path = PODS.path(metadata["namespace"], metadata["name"])
        await self._retried(lambda: self._client.delete(path, body))

    async def _write(self) -> None:
        wanted, status = self._wanted, self._status()
        if status != self._last:
            metadata = self._pod()["metadata"]
            path = PODS.path(metadata["namespace"], metadata["name"], "status")
            await self._client.patch(path, {"metadata": {"uid": metadata["uid"]}, "status": status}, MERGE_PATCH)
            self._last = status
        self._done = wanted
        self._changes.ring()

    async def _retried(self, request: Callable[[], Awaitable[object]]) -> None:
        failures = 0
        while not self._closed:
            try:
                await request()
                return
            except ApiError as error:
                if error.code in {404, 409}:  # the pod has gone, or is another one by now
                    self.close()
                    return
                why: Exception = error
            except KubeError as error:
                why = error
            failures += 1
            _LOG.warning("pod %s: %s", self._pod()["metadata"]["name"], why)
            await asyncio.sleep(self._backoff.delay(failures))
