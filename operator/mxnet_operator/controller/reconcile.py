"""One look at one job: from the caches to a plan, the plan carried out, its status written, its Events told."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.kinds import MXJOB, Kind
from mxnet_operator.api.types import MXJob, MXJobStatus, ObjectMeta
from mxnet_operator.api.validation import validate
from mxnet_operator.controller.events import EventRecorder
from mxnet_operator.controller.executor import Executor
from mxnet_operator.controller.merge_patch import merge_patch
from mxnet_operator.controller.observe import Child, JobRecord
from mxnet_operator.controller.own_writes import OwnWrites
from mxnet_operator.controller.resources import resource_of
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import ApiError, Client
from mxnet_operator.plan import Observed, Plan, PodView, ServiceView, creation_refused, plan, refuse

BY_OWNER: Final = "owner uid"
LOOK_AGAIN: Final = timedelta(seconds=1)
"""When the caches lag behind our writes; their next event brings the job back earlier."""

StatusObserver = Callable[[str, MXJobStatus, MXJobStatus], None]

log = logging.getLogger(__name__)


class _Header(msgspec.Struct, frozen=True):
    """What even a job that can't be decoded has."""

    metadata: ObjectMeta


class _WithStatus(msgspec.Struct, frozen=True):
    status: MXJobStatus = MXJobStatus()


class Reconciler:
    """Looks at jobs of one kind; safe to call for several at the same time, never for one job twice at a time."""

    def __init__(
        self,
        client: Client,
        jobs: Indexer[JobRecord],
        pods: Indexer[Child[PodView]],
        services: Indexer[Child[ServiceView]],
        writes: OwnWrites,
        *,
        kind: Kind = MXJOB,
        executor: Executor | None = None,
        recorder: EventRecorder | None = None,
        on_status: StatusObserver | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """The caches are read, never waited for; `pods` and `services` have the index BY_OWNER.

        `on_status` hears of each status that was written, with the job's namespace and the status before it.
        """
        self._client = client
        self._jobs, self._pods, self._services = jobs, pods, services
        self._writes = writes
        self._now = now
        self._resource = resource_of(kind)
        self._executor = executor or Executor(client, writes, kind=kind)
        self._recorder = recorder or EventRecorder(client, now, kind=kind)
        self._on_status = on_status
        self._valid: dict[str, tuple[str, int]] = {}

    async def reconcile(self, key: str) -> timedelta | None:
        """Do what the job `namespace/name` needs now; returns when to look again even if nothing changes.

        Raises:
            KubeError: something is left to do; look again after a while.
        """
        record = self._jobs.get(key)
        if record is None:
            self._writes.forget(key)
            self._valid.pop(key, None)
            return None
        if unseen := self._writes.unseen(key):
            log.debug("waiting to see %s", unseen, extra={"job": key})
            return LOOK_AGAIN
        job = self._decode(key, record.raw)
        if isinstance(job, MXJob):
            decided = plan(job, self._observed(job.metadata.uid), self._now())
            return await self._carry_out(job, decided)
        meta, status, errors = job
        decided = refuse(meta.name, status, errors, self._now())
        await self._conclude(meta, status, decided)
        return decided.requeue_after

    def _observed(self, uid: str) -> Observed:
        pods = tuple(child.view for child in self._pods.by_index(BY_OWNER, uid))
        services = tuple(child.view for child in self._services.by_index(BY_OWNER, uid))
        return Observed(pods, services)

    async def _carry_out(self, job: MXJob, decided: Plan) -> timedelta | None:
        if not decided.actions:
            await self._conclude(job.metadata, job.status, decided)
            return decided.requeue_after
        outcome = await self._executor.carry_out(with_defaults(job), decided.actions)
        if outcome.refused is not None:
            told = creation_refused(decided.status or job.status, outcome.refused, self._now())
            if told.conditions != job.status.conditions:
                decided = msgspec.structs.replace(decided, status=told)
        await self._conclude(job.metadata, job.status, decided)
        for event in outcome.events:
            await self._recorder.record(job.metadata, event)
        if outcome.error is not None:
            raise outcome.error
        return decided.requeue_after

    async def _conclude(self, job: ObjectMeta, old: MXJobStatus, decided: Plan) -> None:
        """Write the status, if it is new and the job still as it was when decided about; then tell the Events."""
        if decided.status is not None:
            change = merge_patch(_wire(old), _wire(decided.status))
            body = {"metadata": {"resourceVersion": job.resource_version}, "status": change}
            path = self._resource.path(job.namespace, job.name, "status")
            stored = await self._client.patch(path, body)
            self._writes.record(f"{job.namespace}/{job.name}", self._resource, stored)
            if self._on_status is not None:
                self._on_status(job.namespace, old, decided.status)
        for event in decided.events:
            await self._recorder.record(job, event)

    def _decode(self, key: str, raw: bytes) -> MXJob | tuple[ObjectMeta, MXJobStatus, tuple[str, ...]]:
        """The job, or what is known of one that is not valid, with its mistakes."""
        try:
            job = msgspec.json.decode(raw, type=MXJob)
        except msgspec.ValidationError as error:
            return self._malformed(raw, str(error))
        form = (job.metadata.uid, job.metadata.generation)
        if self._valid.get(key) != form and not conditions.is_terminal(job.status):
            errors = validate(msgspec.json.decode(raw))
            if errors:
                return job.metadata, job.status, tuple(error.message for error in errors)
            self._valid[key] = form
        return job

    def _malformed(self, raw: bytes, decoder_says: str) -> tuple[ObjectMeta, MXJobStatus, tuple[str, ...]]:
        meta = msgspec.json.decode(raw, type=_Header).metadata
        try:
            status = msgspec.json.decode(raw, type=_WithStatus).status
        except msgspec.ValidationError:
            status = MXJobStatus()
        errors = validate(msgspec.json.decode(raw))
        return meta, status, tuple(error.message for error in errors) or (decoder_says,)


def _wire(status: MXJobStatus) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(status)
    return built


def is_stale(error: Exception) -> bool:
    """Whether a write missed because the job has changed or gone since: no failure, its event is on the way."""
    return isinstance(error, ApiError) and error.code in {404, 409} and error.reason != "AlreadyExists"
