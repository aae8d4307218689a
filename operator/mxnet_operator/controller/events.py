"""Recorder of Kubernetes Events about jobs, which `kubectl describe` shows."""

import logging
import os
import secrets
import socket
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from mxnet_operator.api.kinds import MXJOB, Kind
from mxnet_operator.api.status_size import shortened
from mxnet_operator.api.types import ObjectMeta
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, KubeError, WriteFencedError
from mxnet_operator.kube.resources import EVENTS
from mxnet_operator.plan.actions import Event

COMPONENT: Final = "mxjob-controller"
_REMEMBERED: Final = 4096

log = logging.getLogger(__name__)


class EventRecorder:
    """Recorder that posts Events; a repetition raises the count of the first. A failure is only logged."""

    def __init__(
        self, client: Client, now: Callable[[], datetime] = lambda: datetime.now(UTC), *, kind: Kind = MXJOB
    ) -> None:
        self._client = client
        self._about = {"apiVersion": kind.api_version, "kind": kind.kind}
        self._now = now
        self._instance = f"{COMPONENT}-{socket.gethostname()}-{os.getpid()}"
        self._posted: OrderedDict[tuple[str, Event], tuple[str, int]] = OrderedDict()

    async def record(self, job: ObjectMeta, event: Event) -> None:
        """Post an Event about the job; one that can't be posted is logged.

        Raises:
            WriteFencedError: the term of leadership is over.
        """
        known = self._posted.get((job.uid, event))
        try:
            if known is None:
                name, count = await self._post(job, event), 1
            else:
                name, count = known[0], known[1] + 1
                try:
                    await self._count(job.namespace, name, count)
                except ApiError as error:
                    if error.code != 404:
                        raise
                    name, count = await self._post(job, event), 1  # the server forgets Events after an hour
        except WriteFencedError:
            raise
        except KubeError as error:
            log.warning("the event %s could not be recorded: %s", event.reason, error, extra=_about(job))
            return
        self._posted[(job.uid, event)] = (name, count)
        self._posted.move_to_end((job.uid, event))
        if len(self._posted) > _REMEMBERED:
            self._posted.popitem(last=False)

    async def _post(self, job: ObjectMeta, event: Event) -> str:
        log.info("%s: %s", event.reason, event.message, extra=_about(job))
        name = f"{job.name}.{secrets.token_hex(8)}"
        now = self._timestamp()
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": job.namespace},
            "involvedObject": {
                **self._about,
                "name": job.name,
                "namespace": job.namespace,
                "uid": job.uid,
                "resourceVersion": job.resource_version,
            },
            "type": event.type,
            "reason": event.reason,
            "message": shortened(event.message),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._client.create(EVENTS.path(job.namespace), body)
        return name

    async def _count(self, namespace: str, name: str, count: int) -> None:
        body = {"count": count, "lastTimestamp": self._timestamp()}
        await self._client.patch(EVENTS.path(namespace, name), body)

    def _timestamp(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _about(job: ObjectMeta) -> dict[str, Any]:
    return {"job": job.key, "uid": job.uid}
