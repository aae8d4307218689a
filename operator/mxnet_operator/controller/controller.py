"""The controller of jobs: watch caches feed one queue, and workers take jobs from it while this process leads."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from mxnet_operator.api.kinds import ALL, MXJOB, Kind
from mxnet_operator.controller.children import KINDS, ChildKind
from mxnet_operator.controller.events import EventRecorder
from mxnet_operator.controller.executor import Executor
from mxnet_operator.controller.leases import Leases
from mxnet_operator.controller.observe import Child, JobRecord
from mxnet_operator.controller.observer import ControllerObserver, JobEvent, Result
from mxnet_operator.controller.own_writes import OwnWrites
from mxnet_operator.controller.reconcile import Reconciler, is_stale
from mxnet_operator.controller.resources import MXJOBS, parts_of, resource_of
from mxnet_operator.controller.turns import Place, Turns
from mxnet_operator.controller.watched import WatchedChildren, WatchedJobs
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.discovery import is_served
from mxnet_operator.kube.errors import KubeError, WriteFencedError
from mxnet_operator.kube.lease import Elector
from mxnet_operator.kube.queue import WorkQueue
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.resources import Resource
from mxnet_operator.kube.supervision import keep_running
from mxnet_operator.plan import Policy

DEFAULT_WORKERS: Final = 8
"""Jobs looked at at a time, but for those whose many requests wait for their turns: they share one CPU."""
_PATIENCE: Final = 10.0
LOOK_FOR_KINDS_SECONDS: Final = 30.0
"""How often is asked whether the CRD of a further kind has come; a request for each that has not."""

log = logging.getLogger(__name__)


class Controller:
    """Runs the jobs of some namespaces, or of all: MXJobs, and those of the further kinds whose CRDs are installed.

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
        look_for_kinds: float = LOOK_FOR_KINDS_SECONDS,
        child_kinds: Sequence[ChildKind] = KINDS,
        policy: Policy | None = None,
    ) -> None:
        """`client` is open and stays the caller's; nothing is asked of the server before `run`. No namespaces: all.

        `fail_fast_hook` is for clusters whose kubelets don't add the hook themselves, as the local one does. The CRDs
        of kinds other than MXJob are looked for every `look_for_kinds` seconds until they are there, and those of
        children that no job needs all the time. `policy` has the times that no field of a job sets.
        """
        self.elector = elector
        self.synced = asyncio.Event()
        self.workers = workers
        self._working = False
        self._observer = observer or ControllerObserver()
        self._look_for_kinds = look_for_kinds
        self._fail_fast_hook = fail_fast_hook
        self._policy = policy
        self.queue = WorkQueue(observer=self._observer)
        self._client, self._writer = client, client.fenced(self._may_write)
        self._turns = Turns()
        self._children = tuple(
            WatchedChildren(client, namespace, self._child_changed, child_kinds) for namespace in namespaces or (None,)
        )
        self._jobs: list[WatchedJobs] = []
        self._reconcilers: dict[tuple[str, str | None], Reconciler] = {}
        """By the resource, as kubectl writes it, and the namespace, if this one watches some only."""
        self._needed = (*self._watch(MXJOB), *(each for children in self._children for each in children.needed))
        self._optional = tuple(kind for kind in child_kinds if not kind.needed)

    def _watch(self, kind: Kind) -> tuple[Reflector[Any], ...]:
        """Have what it takes to run the jobs of a kind; what is returned is to be run."""
        resource, added = resource_of(kind), []
        for children in self._children:
            jobs = WatchedJobs(self._client, kind, children.namespace, self._job_changed)
            writes = OwnWrites({**children.caches.by_resource, resource: jobs.cache})
            self._reconcilers[str(resource), children.namespace] = Reconciler(
                self._writer,
                jobs.cache,
                children.caches,
                writes,
                kind=kind,
                executor=Executor(
                    self._writer,
                    writes,
                    self._turns,
                    kind=kind,
                    fail_fast_hook=self._fail_fast_hook,
                    children=children.caches.kinds,
                ),
                recorder=EventRecorder(self._writer, kind=kind),
                on_status=self._observer.status_written,
                leases=Leases(jobs.reflector.heard_since),
                policy=self._policy,
            )
            added.append(jobs)
        self._jobs += added
        return tuple(jobs.reflector for jobs in added)

    @property
    def leads(self) -> bool:
        """Whether this is the process that acts: always, where there is no election."""
        return self.elector is None or self.elector.leads

    @property
    def needed(self) -> Sequence[Reflector[Any]]:
        """What has to have filled its cache once before any work begins: the children's and MXJob's."""
        return self._needed

    @property
    def reflectors(self) -> Iterator[Reflector[Any]]:
        """All that keeps the caches filled: one per resource and namespace."""
        yield from (jobs.reflector for jobs in self._jobs)
        yield from (reflector for children in self._children for reflector in children.reflectors)

    async def run(self) -> None:
        """Run until cancelled. An unreachable server is waited for."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self.needed:
                self._keep(tasks, f"reflector {reflector.resource}", reflector.run)
            for kind in ALL:
                if kind is not MXJOB:
                    self._keep(tasks, f"kind {resource_of(kind)}", partial(self._watch_once_served, kind))
            for child in self._optional:
                self._keep(tasks, f"kind {child.resource}", partial(self._watch_children_while_served, child))
            for reflector in self.needed:
                await _wait_for(reflector)
            self.synced.set()
            log.info("the caches are filled")
            elector = self.elector
            await self._kept("leader", self._lead if elector is None else lambda: elector.run(self._lead))

    def _keep(self, tasks: asyncio.TaskGroup, name: str, run: Callable[[], Awaitable[None]]) -> None:
        tasks.create_task(self._kept(name, run), name=name)

    async def _kept(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run until cancelled; what nobody expected is logged, counted, and begun anew."""
        await keep_running(name, run, on_crash=self._observer.crashed)

    async def _watch_once_served(self, kind: Kind) -> None:
        """Run the jobs of a kind from when its CRD is there, which may be now, later or never."""
        resource = resource_of(kind)
        while not await self._is_served(resource):  # noqa: ASYNC110 - nobody tells who may not watch CRDs
            await asyncio.sleep(self._look_for_kinds)
        log.info("%s are served: running them, too", resource)
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._watch(kind):
                self._keep(tasks, f"reflector {resource}", reflector.run)

    async def _watch_children_while_served(self, kind: ChildKind) -> None:
        """Watch children of a kind that no job needs from when it is served, and until it no longer is."""
        while True:
            while not await self._is_served(kind.resource):  # noqa: ASYNC110 - nobody tells who may not watch CRDs
                await asyncio.sleep(self._look_for_kinds)
            log.info("%s are served: jobs get them", kind.resource)
            try:
                async with asyncio.TaskGroup() as tasks:
                    watching = [tasks.create_task(self._watch_children(of, kind)) for of in self._children]
                    while await self._is_served(kind.resource) is not False:  # noqa: ASYNC110 - as above
                        await asyncio.sleep(self._look_for_kinds)
                    for task in watching:
                        task.cancel()
            finally:
                for children in self._children:
                    children.end(kind)
            log.info("%s are no longer served: jobs do without", kind.resource)

    async def _watch_children(self, children: WatchedChildren, kind: ChildKind) -> None:
        reflector = children.begin(kind)
        async with asyncio.TaskGroup() as tasks:
            self._keep(tasks, f"reflector {kind.resource}", reflector.run)
            await reflector.synced.wait()
            children.caches.serve(kind, served=True)
            self._look_at_all()

    def _look_at_all(self) -> None:
        """Have every job looked at, if this process leads."""
        for key in (key for jobs in self._jobs for key in jobs.keys if self._working):
            self.queue.add(key)

    async def _is_served(self, resource: Resource) -> bool | None:
        """Whether a resource is served; None where the server doesn't say."""
        try:
            return await is_served(self._client, resource)
        except KubeError as error:
            log.debug("whether %s are served: %s", resource, error)
            return None

    async def _lead(self) -> None:
        """Work until cancelled, or until the lease's time has passed; begins by looking at every job there is."""
        self._working = True
        for reconciler in self._reconcilers.values():
            reconciler.begin()
        try:
            self._look_at_all()
            log.info("running jobs")
            async with asyncio.TaskGroup() as tasks:
                await self._hand_out(tasks)
        finally:
            self._working = False
            self.queue.clear()

    def _may_write(self) -> bool:
        return self._working and self.leads

    def _job_changed(self, key: str, _: JobRecord | None, new: JobRecord | None) -> None:
        if not self._working:
            return
        self.queue.add(key)
        if new is None:
            self._observer.job(parts_of(key)[1].partition("/")[0], JobEvent.DELETED)

    def _child_changed(self, old: Child[Any] | None, new: Child[Any] | None) -> None:
        if not self._working:
            return
        if old is not None:
            self.queue.add(old.job)
        if new is not None:
            self.queue.add(new.job)

    async def _hand_out(self, tasks: asyncio.TaskGroup) -> None:
        """Have each key of the queue looked at, so many at a time as there are workers."""
        places = asyncio.Semaphore(self.workers)
        while True:
            await places.acquire()
            key = await self.queue.get()
            if not self.leads:  # The process stood still, and another may lead by now.
                self.queue.done(key)
                return
            tasks.create_task(self._work(key, Place(places)), name=f"look at {key}")

    async def _work(self, key: str, place: Place) -> None:
        try:
            await self._look_at(key, place.leave)
        finally:
            self.queue.done(key)
            place.leave()

    async def _look_at(self, key: str, on_long: Callable[[], None]) -> None:
        resource, job = parts_of(key)
        reconciler = self._reconciler(resource, job.partition("/")[0])
        if reconciler is None:  # A child of a job whose kind isn't watched yet.
            return
        result = Result.SUCCESS
        try:
            again = await reconciler.reconcile(job, on_long=on_long)
        except WriteFencedError as error:  # The term is over, and with it the queue.
            log.info("%s", error, extra={"job": job})
            return
        except KubeError as error:
            delay = self.queue.add_rate_limited(key)
            stale = is_stale(error)
            result = Result.REQUEUE if stale else Result.ERROR
            level = logging.DEBUG if stale else logging.WARNING
            log.log(level, "%s; looking again in %.1f s", error, delay, extra={"job": job})
        except Exception:  # A bug met by one job must not stop all others.
            delay = self.queue.add_rate_limited(key)
            result = Result.ERROR
            self._observer.panicked()
            log.exception("looking at the job failed; again in %.1f s", delay, extra={"job": job})
        else:
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again.total_seconds())
                result = Result.REQUEUE_AFTER
        self._observer.reconciled(result)

    def _reconciler(self, resource: str, namespace: str) -> Reconciler | None:
        return self._reconcilers.get((resource, namespace)) or self._reconcilers.get((resource, None))


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
