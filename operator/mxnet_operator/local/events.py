"""Recorder of events about pods."""

import asyncio
import logging
import uuid
from datetime import UTC, datetime
from typing import Any, Literal

from mxnet_operator.kube.client import MERGE_PATCH, Client
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.kube.resources import EVENTS


def now() -> str:
    """Format the current time as metav1.Time: seconds, UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_LOG = logging.getLogger(__name__)

EventType = Literal["Normal", "Warning"]


class EventRecorder:
    """Event recorder that writes in the background and counts repeated events instead of repeating them."""

    def __init__(self, client: Client, component: str, host: str) -> None:
        self._client = client
        self._source = {"component": component, "host": host}
        self._seen: dict[str, dict[tuple[str, str], tuple[str, int]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def record(self, pod: dict[str, Any], kind: EventType, reason: str, message: str) -> None:
        """Write an event about `pod` in the background; a failure is only logged."""
        metadata = pod["metadata"]
        seen = self._seen.setdefault(metadata["uid"], {})
        name, count = seen.get((reason, message), (f"{metadata['name'][:200]}.{uuid.uuid4().hex[:16]}", 0))
        seen[reason, message] = (name, count + 1)
        task = asyncio.create_task(self._write(pod, name, count + 1, type=kind, reason=reason, message=message[:1024]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def forget(self, uid: str) -> None:
        self._seen.pop(uid, None)

    async def stop(self) -> None:
        """Drop the events that are not written yet."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, pod: dict[str, Any], name: str, count: int, **said: str) -> None:
        metadata, time = pod["metadata"], now()
        try:
            if count > 1:
                body: dict[str, Any] = {"count": count, "lastTimestamp": time}
                await self._client.patch(EVENTS.path(metadata["namespace"], name), body, MERGE_PATCH)
                return
            body = {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": metadata["namespace"]},
                "involvedObject": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": metadata["name"],
                    "namespace": metadata["namespace"],
                    "uid": metadata["uid"],
                    "resourceVersion": metadata["resourceVersion"],
                },
                **said,
                "source": self._source,
                "reportingComponent": self._source["component"],
                "firstTimestamp": time,
                "lastTimestamp": time,
                "count": 1,
            }
            await self._client.create(EVENTS.path(metadata["namespace"]), body)
        except KubeError as error:
            _LOG.info("event %s of pod %s isn't written: %s", said["reason"], metadata["name"], error)
