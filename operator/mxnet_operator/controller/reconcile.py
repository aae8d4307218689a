"""Reconciliation of one job: from the caches to a plan, the plan carried out, its status written, its Events posted."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from mxnet_operator.api import conditions, job_formats
from mxnet_operator.api.kinds import Kind
from mxnet_operator.api.status_size import within_bounds
from mxnet_operator.api.types import MXJob, MXJobStatus, ObjectMeta
from mxnet_operator.client.resources import resource_of
from mxnet_operator.controller.child_caches import ChildCaches
from mxnet_operator.controller.decoding import JobRead, Reader
from mxnet_operator.controller.events import EventRecorder
from mxnet_operator.controller.executor import Executor
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.fair_semaphore import IN_FLIGHT
from mxnet_operator.controller.leases import Leases
from mxnet_operator.controller.memory import JobMemory
from mxnet_operator.controller.merge_patch import merge_patch
from mxnet_operator.controller.projection import JobRecord
from mxnet_operator.controller.reads import lags_behind, observe_more, owned_pods
from mxnet_operator.controller.reconcile_errors import ReconcileErrors
from mxnet_operator.controller.status_writer import StatusWriter
from mxnet_operator.integrations.child_kinds import KindsState
from mxnet_operator.integrations.integration import Integration, JobReader, ReaderContext
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, WriteFencedError
from mxnet_operator.plan import (
    Effects,
    Observed,
    Policy,
    Reads,
    creation_rejected,
    plan,
    reject,
    with_attempt_created,
)
from mxnet_operator.plan.actions import CreatePod, DeleteJob, SuspendJob
from mxnet_operator.readers.pods import ENDED

REQUEUE_AFTER: Final = timedelta(seconds=1)
"""Requeue delay while the caches lag behind our writes; their next event brings the job back earlier."""

StatusObserver = Callable[[str, MXJobStatus, MXJobStatus], None]

log = logging.getLogger(__name__)


@dataclass
class Reconciler:
    """Reconciler of the jobs of one kind; safe for several jobs at the same time, never for one job twice at a time.

    It reads the caches and never waits for them.
    """

    client: Client
    jobs: Indexer[JobRecord]
    children: ChildCaches
    writes: OwnWrites
    _: KW_ONLY
    kind: InitVar[Kind]
    executor: Executor
    recorder: EventRecorder
    on_status: StatusObserver
    """Called for each status that was written, with the job's namespace and the status before it."""
    leases: Leases
    integrations: Sequence[tuple[Integration, Callable[[], KindsState]]]
    """Each with a function that returns whether the server serves its kinds."""
    statuses: StatusWriter
    """Shared by all reconcilers."""
    policy: Policy
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """Time of day, for what is stored."""
    clock: Callable[[], float] = time.monotonic
    """Measures intervals, as it goes on where the time of day is set back."""

    def __post_init__(self, kind: Kind) -> None:
        self._resource = resource_of(kind)
        self._reader = Reader(kind)
        self._memories: dict[str, JobMemory] = {}
        """What is remembered of each job that exists, by key."""
        self._policies = tuple(each.policy for each, _ in self.integrations)
        readers = (self._reader_of(each, state) for each, state in self.integrations)
        self._readers = tuple(reader for reader in readers if reader is not None)
        self._errors = ReconcileErrors(
            self.client, self._resource, self.writes, self.recorder, now=self.now, clock=self.clock
        )

    def _reader_of(self, integration: Integration, state: Callable[[], KindsState]) -> JobReader | None:
        own = {kind.resource for choice in integration.choices for kind in choice}
        return integration.reader(
            ReaderContext(
                client=self.client,
                record=self.recorder.record,
                children=self.children.children,
                served=lambda: tuple(kind for kind in self.children.served() if kind.resource in own),
                state=state,
                clock=self.clock,
            )
        )

    def begin(self) -> None:
        """Begin a term of leadership: measurements of an earlier one no longer count."""
        for memory in self._memories.values():
            memory.begin_term()

    async def reconcile(self, key: str, *, on_long: Callable[[], None] = lambda: None) -> timedelta | None:
        """Reconcile the job `namespace/name`; return when to requeue it even if nothing changes.

        `on_long` is called before more requests are made than may be under way: from then on it mostly waits.

        Raises:
            KubeError: something is left to do; reconcile again after a while.
            Exception: the job can't be handled, and says so by now.
        """
        record = self.jobs.get(key)
        if unseen := self.writes.unseen(key):
            log.debug("waiting to see %s", unseen, extra={"job": key})
            return REQUEUE_AFTER
        if record is None:
            self.statuses.forget_job(self._resource, self._status_path(key))
            self._memories.pop(key, None)
            for reader in self._readers:
                reader.forget(key)
            return None
        memory = self._memories.setdefault(key, JobMemory())
        raw = record.raw or await self._large(key)
        if raw is None:
            return REQUEUE_AFTER  # It is gone, and the watch will say so.
        try:
            again = await self._reconcile(key, raw, memory, on_long)
        except WriteFencedError:
            raise
        except Exception as error:
            if not is_stale(error):
                await self._errors.report(key, raw, error, memory)
            raise
        self.statuses.forget_job(self._resource, self._status_path(key))
        return again

    async def _large(self, key: str) -> bytes | None:
        """Return a job that is too large for the cache, read from the server: at least as new as the cache's version.

        None where it is deleted.
        """
        namespace, _, name = key.partition("/")
        found = await self.client.find(self._resource.path(namespace, name))
        return None if found is None else msgspec.json.encode(found)

    async def _reconcile(
        self, key: str, raw: bytes, memory: JobMemory, on_long: Callable[[], None]
    ) -> timedelta | None:
        read = self._reader.read(raw, memory)
        if read.job is None:
            running = await self._has_running_pods(read)
            decided = reject(
                read.metadata.name,
                read.status,
                read.mistakes,
                self.now(),
                has_running_pods=running,
                is_deleting=read.metadata.deletion_timestamp is not None,
            )
            await self._conclude(read, decided)
            return decided.requeue_after
        observed = msgspec.structs.replace(
            self.children.observed(read.job.metadata.uid),
            pods_lag=lags_behind(self.children.pods, read.job),
            lease_left=self.leases.left(memory, read.job),
        )
        for reader in self._readers:
            observed = await reader.observe(read.job, raw, observed)
        decided = await self._decide(read.job, observed)
        again = await self._carry_out(read, read.job, decided, on_long)
        later = [again, *[await reader.after(read.job) for reader in self._readers]]
        await self._errors.clear(key, raw, memory)
        return min((each for each in later if each is not None), default=None)

    async def _has_running_pods(self, read: JobRead) -> bool:
        """Return whether pods of an invalid job run; one without conditions is new, and no operator has made any."""
        pods = self.children.observed(read.metadata.uid).pods
        if read.status.conditions and all(pod.phase in ENDED for pod in pods):
            pods = await owned_pods(self.client, read.metadata)
        return any(pod.phase not in ENDED for pod in pods)

    async def _decide(self, job: MXJob, observed: Observed) -> Effects:
        rules, now = self.children.rules, self.now()
        while isinstance(answer := plan(job, observed, now, self.policy, rules, integrations=self._policies), Reads):
            observed = await observe_more(self.client, self._resource, job, observed, answer)
        return answer

    async def _carry_out(
        self, read: JobRead, job: MXJob, decided: Effects, on_long: Callable[[], None]
    ) -> timedelta | None:
        started, left = decided.job, decided.pods_left
        if not decided.actions or started is None:
            await self._conclude(read, decided, pods_left=left)
            return decided.requeue_after
        if len(decided.actions) > IN_FLIGHT:
            on_long()
        outcome = await self.executor.carry_out(started, decided.actions)
        if outcome.error is not None and ends_job(decided):
            raise outcome.error  # What did not happen is not reported.
        if outcome.error is None and any(isinstance(action, CreatePod) for action in decided.actions):
            status = with_attempt_created(started, decided.status or job.status)
            if status != job.status:
                decided = msgspec.structs.replace(decided, status=status)
        if outcome.rejected is not None:
            decided = creation_rejected(started, decided, outcome.rejected, self.now())
        await self._conclude(read, decided, pods_left=left)
        for event in outcome.events:
            await self.recorder.record(job.metadata, event)
        is_over = decided.status is not None and conditions.is_terminal(decided.status)
        if outcome.error is not None and (not is_over or conditions.is_terminal(job.status)):
            raise outcome.error
        return decided.requeue_after

    async def _conclude(self, read: JobRead, decided: Effects, *, pods_left: bool = False) -> None:
        """Write the status, if it is new and the job unchanged since the plan; then post the Events."""
        job, status = read.metadata, decided.status
        if status is None and read.format.has_phases and conditions.is_terminal(read.status):
            status = read.status  # Its last phase comes when the clean-up is over.
        if status is not None:
            old = msgspec.to_builtins(read.status) if read.stored is None else read.stored
            wire = job_formats.status_to_wire(read.format, read.source, within_bounds(status), pods_left=pods_left)
            if (change := merge_patch(old, wire)) or decided.status is not None:
                await self._write(job, change)
        if decided.status is not None:
            self.on_status(job.namespace, read.status, decided.status)
        for event in decided.events:
            await self.recorder.record(job, event)

    async def _write(self, job: ObjectMeta, change: dict[str, Any]) -> None:
        body = {"metadata": {"resourceVersion": job.resource_version}, "status": change}
        stored = await self.statuses.patch(self.client, self._resource, self._status_path(job.key), body)
        self.writes.record(job.key, self._resource, stored.metadata.resource_version)

    def _status_path(self, key: str) -> str:
        namespace, _, name = key.partition("/")
        return self._resource.path(namespace, name, "status")


def ends_job(decided: Effects) -> bool:
    """Return whether the plan deletes or suspends the job itself."""
    return any(isinstance(action, (DeleteJob, SuspendJob)) for action in decided.actions)


def is_stale(error: Exception) -> bool:
    """Return whether a write conflicted because the job has changed or gone: no failure, its event is on the way."""
    return isinstance(error, ApiError) and error.code in {404, 409} and error.reason != "AlreadyExists"
