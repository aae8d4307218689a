"""Condition ReconcileError and its Event: every job that fails to reconcile says so.

It works on the job's JSON, since reading that into its type may be what fails.
"""

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition, ObjectMeta
from mxnet_operator.controller.events import EventRecorder
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.memory import JobMemory
from mxnet_operator.controller.status_writer import OutdatedCRDError
from mxnet_operator.kube.answers import Stored
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan import reconcile_failed, reconciled
from mxnet_operator.plan.actions import Event

FAILURES_BEFORE_REPORT: Final = 5
"""Consecutive failures of the API server before one is reported: with the queue's back-off, about three seconds."""
AT_MOST_EVERY: Final = 60.0
"""Minimum seconds between writes of a condition whose message changes with each attempt."""
LONGEST: Final = 800
"""Maximum characters of an error in a message."""
_OVERLOADED: Final = frozenset({429, 503, 504})
_PACKAGE: Final = "mxnet_operator"

log = logging.getLogger(__name__)


class _Stored(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    status: Any = None


@dataclass
class ReconcileErrors:
    """Reporter of the errors of jobs of one kind, which clears the report once a job is reconciled again."""

    client: Client
    resource: Resource
    writes: OwnWrites
    recorder: EventRecorder
    now: Callable[[], datetime]
    """UTC, for conditions."""
    clock: Callable[[], float]
    """Measures intervals."""

    async def report(self, key: str, raw: bytes, error: Exception, memory: JobMemory) -> None:
        """Report a failure, unless the job's status says so already; a server's response only once it persists."""
        memory.failures += 1
        stored = msgspec.json.decode(raw, type=_Stored)
        current = _conditions(stored.status)
        now, at = self.now().replace(microsecond=0), self.clock()
        may_pass = isinstance(error, KubeError) and not isinstance(error, OutdatedCRDError)
        if may_pass and (memory.failures < FAILURES_BEFORE_REPORT or not _is_news(error, current)):
            return
        if memory.failure_written is not None and at - memory.failure_written < AT_MOST_EVERY:
            return
        why, message = _words(error)
        changed = reconcile_failed(stored.metadata.name, current, why, message, now)
        if changed == current:
            return
        memory.failure_written = at
        await self._write(key, stored.metadata, changed)
        await self.recorder.record(stored.metadata, Event("Warning", conditions.RECONCILE_ERROR, message))

    async def clear(self, key: str, raw: bytes, memory: JobMemory) -> None:
        """Clear the report, if there is one: the job is reconciled again."""
        memory.failures, memory.failure_written = 0, None
        if conditions.RECONCILE_ERROR.encode() not in raw or self.writes.unseen(key):
            return  # What was just written changes the job, and it comes again.
        stored = msgspec.json.decode(raw, type=_Stored)
        current = _conditions(stored.status)
        changed = reconciled(current, self.now().replace(microsecond=0))
        if changed != current:
            await self._write(key, stored.metadata, changed)

    async def _write(self, key: str, job: ObjectMeta, changed: tuple[Condition, ...]) -> None:
        status = {"conditions": msgspec.to_builtins(changed), "state": conditions.state_of(changed)}
        body = {"metadata": {"resourceVersion": job.resource_version}, "status": status}
        try:
            path = self.resource.path(job.namespace, job.name, "status")
            written = await self.client.patch_as(path, body, Stored)
        except KubeError as error:
            log.info("the condition %s could not be written: %s", conditions.RECONCILE_ERROR, error, extra={"job": key})
        else:
            self.writes.record(key, self.resource, written.metadata.resource_version)


def _conditions(status: Any) -> tuple[Condition, ...]:
    try:
        return msgspec.convert((status or {}).get("conditions") or (), tuple[Condition, ...])
    except (AttributeError, msgspec.ValidationError):
        return ()


def _is_news(error: Exception, current: tuple[Condition, ...]) -> bool:
    """Return whether a response is worth reporting: not that the server is down, nor what ReplicaFailure says."""
    if not isinstance(error, ApiError) or error.code in _OVERLOADED:
        return False
    return not conditions.is_true(current, conditions.REPLICA_FAILURE)


def _words(error: Exception) -> tuple[str, str]:
    text = " ".join(str(error).split())
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    if isinstance(error, OutdatedCRDError):
        return conditions.REASON_CRD_OUTDATED, text[:1].upper() + text[1:]
    if isinstance(error, ApiError):
        return error.reason or "ApiError", f"The API server answers {error.code}, and it is tried again: {text}"
    name = type(error).__name__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _PACKAGE in frame.filename]
    where = f" in {frames[-1].name}" if frames else ""
    return name, (
        f"The controller can't handle this job and tries again: {name}{where}: {text}. This is a bug of mxnet-operator;"
        " its log has the traceback. `mxjob validate` may find a field of the manifest that leads to it."
    )
