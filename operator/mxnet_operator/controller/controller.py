"""The MXJob controller: watch caches feed one queue, and workers take jobs from it while this process leads."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from mxnet_operator.controller.events import EventRecorder
from mxnet_operator.controller.executor import IN_FLIGHT, Executor
from mxnet_operator.controller.observe import Child, JobRecord
from mxnet_operator.controller.observer import ControllerObserver, JobEvent, Result
from mxnet_operator.controller.own_writes import OwnWrites
from mxnet_operator.controller.reconcile import Reconciler, is_stale
from mxnet_operator.controller.resources import MXJOBS
from mxnet_operator.controller.watched import Watched
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import KubeError, WriteFencedError
from mxnet_operator.kube.lease import Elector
from mxnet_operator.kube.queue import WorkQueue
from mxnet_operator.kube.reflector import Reflector

DEFAULT_WORKERS: Final = 8
"""Jobs looked at at a time. They share one CPU: more of them only wait for more replies at once."""
_PATIENCE: Final = 10.0

log = logging.getLogger(__name__)


class Controller:
    """Runs the MXJobs of some namespaces, or of all.

    With an `elector`, it does so only while that leads; the caches are kept filled in any case, so a standby that takes
    over goes to work at once.
    """

    def __init__(
        self,
        client: Client,
        namespaces: Sequence[str] = (),
        *,
        workers: int = DEFAULT_WORKERS,
        elector: Elector | None = None,
        observer: ControllerObserver | None = None,
        fail_fast_hook: bool = False,
    ) -> None:
        """`client` is open and stays the caller's; nothing is asked of the server before `run`. No namespaces: all.

        `fail_fast_hook` is for clusters whose kubelets don't add the hook themselves, as the local one does.
        """
        self.elector = elector
        self.synced = asyncio.Event()
        self.workers = workers
        self._working = False
        self._observer = observer or ControllerObserver()
        self.queue = WorkQueue(observer=self._observer)
        self._watched = tuple(
            Watched(client, namespace, self._job_changed, self._child_changed) for namespace in namespaces or (None,)
        )
        writer = client.fenced(self._may_write)
        recorder, in_flight = EventRecorder(writer), asyncio.Semaphore(IN_FLIGHT)
        self._reconcilers: dict[str | None, Reconciler] = {}
        for watched in self._watched:
            writes = OwnWrites(watched.caches)
            self._reconcilers[watched.namespace] = Reconciler(
                writer,
                watched.jobs,
                watched.pods,
                watched.services,
                writes,
                executor=Executor(writer, writes, in_flight, fail_fast_hook=fail_fast_hook),
                recorder=recorder,
                on_status=self._observer.status_written,
            )

    @property
    def leads(self) -> bool:
        """Whether this is the process that acts: always, where there is no election."""
        return self.elector is None or self.elector.leads

    @property
    def reflectors(self) -> Iterator[Reflector[Any]]:
        """What keeps the caches filled: one per resource and namespace."""
        return (reflector for watched in self._watched for reflector in watched.reflectors)

    async def run(self) -> None:
        """Run until cancelled. An unreachable server is waited for."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self.reflectors:
                tasks.create_task(reflector.run(), name=f"reflector {reflector.resource}")
            for reflector in self.reflectors:
                await _wait_for(reflector)
            self.synced.set()
            log.info("the caches are filled")
            if self.elector is None:
                await self._lead()
            else:
                await self.elector.run(self._lead)

    async def _lead(self) -> None:
        """Work until cancelled, or until the lease's time has passed; begins by looking at every job there is."""
        self._working = True
        try:
            for watched in self._watched:
                for key in watched.jobs:
                    self.queue.add(key)
            log.info("running jobs")
            async with asyncio.TaskGroup() as tasks:
                for number in range(self.workers):
                    tasks.create_task(self._work(), name=f"worker {number}")
        finally:
            self._working = False
            self.queue.clear()

    def _may_write(self) -> bool:
        return self._working and self.leads

    def _job_changed(self, old: JobRecord | None, new: JobRecord | None) -> None:
        job = new or old
        if job is None or not self._working:
            return
        self.queue.add(job.key)
        if new is None:
            self._observer.job(job.key.partition("/")[0], JobEvent.DELETED)

    def _child_changed(self, old: Child[Any] | None, new: Child[Any] | None) -> None:
        if not self._working:
            return
        if old is not None:
            self.queue.add(old.job)
        if new is not None:
            self.queue.add(new.job)

    async def _work(self) -> None:
        while True:
            key = await self.queue.get()
            try:
                if not self.leads:  # The process stood still, and another may lead by now.
                    return
                await self._look_at(key)
            finally:
                self.queue.done(key)

    async def _look_at(self, key: str) -> None:
        result = Result.SUCCESS
        try:
            again = await self._reconciler_for(key).reconcile(key)
        except WriteFencedError as error:  # The term is over, and with it the queue.
            log.info("%s", error, extra={"job": key})
            return
        except KubeError as error:
            delay = self.queue.add_rate_limited(key)
            stale = is_stale(error)
            result = Result.REQUEUE if stale else Result.ERROR
            level = logging.DEBUG if stale else logging.WARNING
            log.log(level, "%s; looking again in %.1f s", error, delay, extra={"job": key})
        except Exception:  # A bug met by one job must not stop all others.
            delay = self.queue.add_rate_limited(key)
            result = Result.ERROR
            log.exception("looking at the job failed; again in %.1f s", delay, extra={"job": key})
        else:
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again.total_seconds())
                result = Result.REQUEUE_AFTER
        self._observer.reconciled(result)

    def _reconciler_for(self, key: str) -> Reconciler:
        namespace = key.partition("/")[0]
        return self._reconcilers.get(namespace) or self._reconcilers[None]


async def _wait_for(reflector: Reflector[Any]) -> None:
    while True:
        try:
            async with asyncio.timeout(_PATIENCE):
                await reflector.synced.wait()
                return
        except TimeoutError:
            hint = (
                ": is its CRD installed? (mxnet-operator crd | kubectl apply -f -)"
                if reflector.resource == MXJOBS
                else ""
            )
            log.warning("still waiting for a list of %s%s", reflector.resource, hint)
