"""Controller of jobs: watch caches feed one work queue, and workers reconcile its keys while this process leads."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from mxnet_operator.api.kinds import ALL, MXJOB, Kind
from mxnet_operator.client.resources import MXJOBS, parts_of, resource_of
from mxnet_operator.controller.children import KINDS, ChildKind
from mxnet_operator.controller.children.queue_workloads import QUEUE_WORKLOADS
from mxnet_operator.controller.events import EventRecorder
from mxnet_operator.controller.executor import Executor
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.fair_semaphore import FairSemaphore, Place
from mxnet_operator.controller.gangs.backend import GangBackend
from mxnet_operator.controller.gangs.kinds import child_kinds as child_kinds_of
from mxnet_operator.controller.informers import WatchedChildren, WatchedJobs
from mxnet_operator.controller.instrumentation import ControllerObserver, JobEvent, Result
from mxnet_operator.controller.leases import Leases
from mxnet_operator.controller.projection import Child, JobRecord
from mxnet_operator.controller.queues import Queues
from mxnet_operator.controller.reconcile import Reconciler, is_stale
from mxnet_operator.controller.status_writer import StatusWriter
from mxnet_operator.kube.answers import AnyList
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.discovery import is_served, until_gone
from mxnet_operator.kube.errors import ApiError, InvalidAnswerError, KubeError, WriteFencedError
from mxnet_operator.kube.lease import LeaderElector
from mxnet_operator.kube.queue import WorkQueue
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.resources import Resource
from mxnet_operator.kube.supervision import keep_running
from mxnet_operator.plan import Policy

DEFAULT_WORKERS: Final = 8
"""Maximum concurrent reconciliations, except ones that mostly wait for requests: they share one CPU."""
_SYNC_SECONDS: Final = 10.0
_ASK_AGAIN: Final = 1.0
"""Seconds until discovery is retried that failed before any work began."""
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
DISCOVERY_SECONDS: Final = 30.0
"""Interval of the check whether the CRD of a further kind is installed; one request for each that is not."""

log = logging.getLogger(__name__)


class Controller:
    """Controller of the jobs of some namespaces, or of all: MXJobs, and the further kinds whose CRDs are installed.

    With an `elector`, it acts only while that leads; the caches are kept filled in any case, so a standby that takes
    over starts at once.
    """

    def __init__(
        self,
        client: Client,
        namespaces: Sequence[str] = (),
        *,
        workers: int = DEFAULT_WORKERS,
        elector: LeaderElector | None = None,
        observer: ControllerObserver | None = None,
        fail_fast_hook: bool = False,
        discovery_interval: float = DISCOVERY_SECONDS,
        child_kinds: Sequence[ChildKind] = KINDS,
        gangs: Sequence[GangBackend] = (),
        policy: Policy | None = None,
    ) -> None:
        """Create a controller for these namespaces (none: all) that sends no request before `run`.

        `client` is open and stays the caller's. `fail_fast_hook` is for clusters whose kubelets don't add the hook
        themselves, as the local one does. The CRDs of kinds other than MXJob are discovered every `discovery_interval`
        seconds until they are installed, those of optional children all the time. Of `gangs`, gang schedulers, the
        first that is served schedules the pods of jobs; whether one is, is known before the first job is reconciled.
        `policy` has the times that no field of a job sets.
        """
        self.elector = elector
        self.synced = asyncio.Event()
        self.workers = workers
        self.statuses = StatusWriter()
        self._working = False
        self._observer = observer or ControllerObserver()
        self._discovery_interval = discovery_interval
        self._fail_fast_hook = fail_fast_hook
        self._policy = policy
        self.queue = WorkQueue(observer=self._observer)
        self._client, self._writer = client, client.fenced(self._may_write)
        self._requests = FairSemaphore()
        self._gangs = tuple(_Gang(backend.name, child_kinds_of(backend)) for backend in gangs)
        self._gang_is_known = asyncio.Event()
        self._gang_error: KubeError | None = None
        """Why the server didn't say which gang schedulers it serves, when it was last asked."""
        rows = (*child_kinds, *QUEUE_WORKLOADS, *(row for gang in self._gangs for row in gang.kinds))
        self._children = tuple(
            WatchedChildren(client, namespace, self._child_changed, rows) for namespace in namespaces or (None,)
        )
        self._queues = Queues(client, self._children, self._reconcile_all, self._observer.crashed, discovery_interval)
        self._jobs: list[WatchedJobs] = []
        self._reconcilers: dict[tuple[str, str | None], Reconciler] = {}
        """Reconcilers by resource, as kubectl writes it, and by namespace, if this controller watches some only."""
        mxjobs = self._watch(MXJOB)
        self._needed: dict[str | None, tuple[Reflector[Any], ...]] = {
            children.namespace: (jobs, *children.needed) for jobs, children in zip(mxjobs, self._children, strict=True)
        }
        """Reflectors by namespace that must have synced once before its jobs are run: MXJob's and the children's."""
        self._one_synced = asyncio.Event()
        self._begun: set[str | None] = set()
        """Namespaces whose jobs are run."""
        self._optional = tuple(kind for kind in child_kinds if not kind.needed)

    def _watch(self, kind: Kind) -> tuple[Reflector[Any], ...]:
        """Create the caches, the reconciler and the reflector for the jobs of a kind; return the reflectors to run."""
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
                    self._requests,
                    kind=kind,
                    fail_fast_hook=self._fail_fast_hook,
                    served=partial(_served, children),
                ),
                recorder=EventRecorder(self._writer, kind=kind),
                on_status=self._observer.status_written,
                leases=Leases(jobs.reflector.heard_since),
                queues=partial(self._queues.system, children),
                statuses=self.statuses,
                policy=self._policy_of(kind),
            )
            added.append(jobs)
        self._jobs += added
        return tuple(jobs.reflector for jobs in added)

    def _policy_of(self, kind: Kind) -> Policy | None:
        """Return the policy for jobs of a kind: the address of a page names no kind, so only MXJobs have one."""
        if self._policy is None or kind is MXJOB:
            return self._policy
        return msgspec.structs.replace(self._policy, job_url_template="")

    @property
    def leads(self) -> bool:
        """Whether this process acts: always, without leader election."""
        return self.elector is None or self.elector.leads

    def waits_for(self) -> str:
        """Return which lists are missing, and why, while no namespace has all of its own; empty once one has."""
        missing = [
            [reflector for reflector in needed if not reflector.synced.is_set()] for needed in self._needed.values()
        ]
        return "; ".join(_missing(each) for of_one in missing for each in of_one) if all(missing) else ""

    @property
    def reflectors(self) -> Iterator[Reflector[Any]]:
        """Reflectors of all caches: one per resource and namespace."""
        yield from (jobs.reflector for jobs in self._jobs)
        yield from (reflector for children in self._children for reflector in children.reflectors)

    async def run(self) -> None:
        """Run until cancelled; wait for an unreachable server."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in (each for needed in self._needed.values() for each in needed):
                self._keep(tasks, f"reflector {reflector.resource}", reflector.run)
            for kind in ALL:
                if kind is not MXJOB:
                    self._keep(tasks, f"kind {resource_of(kind)}", partial(self._watch_once_served, kind))
            for child in self._optional:
                self._keep(tasks, f"kind {child.resource}", partial(self._watch_children_while_served, child))
            if self._gangs:
                self._keep(tasks, "gang scheduling", self._watch_gangs)
            else:
                self._gang_is_known.set()
            for namespace in self._needed:
                self._keep(tasks, f"namespace {namespace or 'all'}", partial(self._begin, namespace))
            await self._one_synced.wait()
            await self._wait_for_gangs()
            self._keep(tasks, "queues", self._queues.run)
            self.synced.set()
            log.info("the caches are filled")
            elector = self.elector
            await self._kept("leader", self._lead if elector is None else lambda: elector.run(self._lead))

    async def _begin(self, namespace: str | None) -> None:
        """Begin to run the jobs of a namespace once its caches are filled, whatever keeps those of others empty."""
        for reflector in self._needed[namespace]:
            await _wait_for(reflector)
        self._one_synced.set()
        await self._gang_is_known.wait()
        self._begun.add(namespace)
        self._reconcile_all()

    def _keep(self, tasks: asyncio.TaskGroup, name: str, run: Callable[[], Awaitable[None]]) -> None:
        tasks.create_task(self._kept(name, run), name=name)

    async def _kept(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a task until cancelled; log and count an unexpected error, and start it again."""
        await keep_running(name, run, on_crash=self._observer.crashed)

    async def _watch_once_served(self, kind: Kind) -> None:
        """Run the jobs of a kind from when its CRD is installed, which may be now, later or never."""
        resource = resource_of(kind)
        while not await self._is_served(resource):  # noqa: ASYNC110 - nobody tells who may not watch CRDs
            await asyncio.sleep(self._discovery_interval)
        log.info("%s are served: reconciling them, too", resource)
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._watch(kind):
                self._keep(tasks, f"reflector {resource}", reflector.run)

    async def _watch_children_while_served(self, kind: ChildKind) -> None:
        """Watch children of an optional kind from when it is served, and until it no longer is."""
        while True:
            while not await self._is_served(kind.resource):  # noqa: ASYNC110 - nobody tells who may not watch CRDs
                await asyncio.sleep(self._discovery_interval)
            await self._watch_while_served((kind,))

    async def _watch_gangs(self) -> None:
        """Have the pods of jobs scheduled by the first gang scheduler that is served, from when one is."""
        while True:
            try:
                gang, self._gang_error = await self._served_gang(), None
            except KubeError as error:
                gang, self._gang_error = None, error
            if gang is None:
                if self._gang_error is None:
                    self._gang_is_known.set()
                await asyncio.sleep(self._discovery_interval if self._gang_is_known.is_set() else _ASK_AGAIN)
                continue
            log.info("gang scheduling by %s: jobs of several pods get pod groups", gang.name)
            known_in_time = asyncio.get_running_loop().call_later(_SYNC_SECONDS, self._give_up_on, gang)
            try:
                await self._watch_while_served(gang.kinds, on_synced=self._gang_is_known.set)
            finally:
                known_in_time.cancel()

    async def _served_gang(self) -> "_Gang | None":
        """Return the first gang scheduler all of whose kinds are served, rather one whose objects may be listed.

        Raises:
            KubeError: the server doesn't say.
        """
        forbidden: _Gang | None = None
        for gang in self._gangs:
            if await self._are_served(gang.kinds):
                if await self._may_list(gang.kinds):
                    return gang
                forbidden = forbidden or gang
        return forbidden

    async def _may_list(self, kinds: Sequence[ChildKind]) -> bool:
        """Return whether this controller has the right to list the objects of these kinds."""
        for path in (kind.resource.path(children.namespace) for kind in kinds for children in self._children):
            try:
                await self._client.get(path, {"limit": 1}, shape=AnyList)
            except ApiError as error:
                if error.code == _FORBIDDEN:
                    log.info("another gang scheduler is looked for: %s", error)
                    return False
        return True

    async def _wait_for_gangs(self) -> None:
        """Wait until it is known whether jobs get pod groups; work without where the server answers and doesn't say.

        While it doesn't answer at all, no job can be run either.
        """
        while not self._gang_is_known.is_set():
            try:
                async with asyncio.timeout(_SYNC_SECONDS):
                    await self._gang_is_known.wait()
            except TimeoutError:
                error = self._gang_error
                if isinstance(error, ApiError | InvalidAnswerError):
                    log.warning("whether a gang scheduler is served is unknown, and jobs get no pod groups: %s", error)
                    self._gang_is_known.set()
                elif error is not None:
                    log.warning("still waiting for the server to say whether it has a gang scheduler: %s", error)

    def _give_up_on(self, gang: "_Gang") -> None:
        """Start work without pod groups where they can't be listed."""
        if not self._gang_is_known.is_set():
            log.warning(
                "pod groups of %s can't be listed, and jobs get none until they can: may this controller list and"
                " watch them? (docs/gpus.md)",
                gang.name,
            )
            self._gang_is_known.set()

    async def _watch_while_served(
        self, kinds: Sequence[ChildKind], *, on_synced: Callable[[], None] = lambda: None
    ) -> None:
        """Watch children of served kinds until one no longer is; call `on_synced` when the caches have synced."""
        names = ", ".join(str(kind.resource) for kind in kinds)
        log.info("%s are served: jobs get them", names)
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = [tasks.create_task(self._watch_children(of, kinds, on_synced)) for of in self._children]
                await until_gone(partial(self._are_served, kinds), self._discovery_interval)
                for task in watching:
                    task.cancel()
        finally:
            for children in self._children:
                for kind in kinds:
                    children.end(kind)
        log.info("%s are no longer served: jobs get none", names)

    async def _are_served(self, kinds: Sequence[ChildKind]) -> bool:
        for kind in kinds:
            if not await is_served(self._client, kind.resource):
                return False
        return True

    async def _watch_children(
        self, children: WatchedChildren, kinds: Sequence[ChildKind], on_synced: Callable[[], None]
    ) -> None:
        """Fill the caches of served kinds, and reconcile jobs with them once they have synced."""
        reflectors = [children.begin(kind) for kind in kinds]
        async with asyncio.TaskGroup() as tasks:
            for reflector in reflectors:
                self._keep(tasks, f"reflector {reflector.resource}", reflector.run)
            for reflector in reflectors:
                await reflector.synced.wait()
            for kind in kinds:
                children.caches.serve(kind, served=True)
            if all(kind in each.caches.served for each in self._children for kind in kinds):
                on_synced()
            self._reconcile_all()

    def _reconcile_all(self) -> None:
        """Enqueue every job, if this process leads."""
        for key in (key for jobs in self._jobs for key in jobs.keys if self._working):
            self.queue.add(key)

    async def _is_served(self, resource: Resource) -> bool | None:
        """Return whether a resource is served; None where the server doesn't say."""
        try:
            return await is_served(self._client, resource)
        except KubeError as error:
            log.debug("whether %s are served: %s", resource, error)
            return None

    async def _lead(self) -> None:
        """Work until cancelled, or until the lease has expired; begin by reconciling every job."""
        self._working = True
        for reconciler in self._reconcilers.values():
            reconciler.begin()
        try:
            self._reconcile_all()
            log.info("running jobs")
            async with asyncio.TaskGroup() as tasks:
                await self._hand_out(tasks)
        finally:
            self._working = False
            self.queue.clear()
            self.statuses.forget()

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
        """Reconcile each key of the queue, as many at a time as there are workers."""
        places = asyncio.Semaphore(self.workers)
        while True:
            await places.acquire()
            key = await self.queue.get()
            if not self.leads:  # The process stood still, and another may lead by now.
                self.queue.done(key)
                return
            tasks.create_task(self._work(key, Place(places)), name=f"reconcile {key}")

    async def _work(self, key: str, place: Place) -> None:
        try:
            await self._look_at(key, place.leave)
        finally:
            self.queue.done(key)
            place.leave()

    async def _look_at(self, key: str, on_long: Callable[[], None]) -> None:
        resource, job = parts_of(key)
        reconciler = self._reconciler(resource, job.partition("/")[0])
        if reconciler is None:  # Its kind or its namespace isn't watched yet; then all jobs are enqueued.
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
            log.log(level, "%s; requeued in %.1f s", error, delay, extra={"job": job})
        except Exception:  # A bug met by one job must not stop all others.
            delay = self.queue.add_rate_limited(key)
            result = Result.ERROR
            self._observer.panicked()
            log.exception("reconciling the job failed; requeued in %.1f s", delay, extra={"job": job})
        else:
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again.total_seconds())
                result = Result.REQUEUE_AFTER
        self._observer.reconciled(result)

    def _reconciler(self, resource: str, namespace: str) -> Reconciler | None:
        watched = namespace if namespace in self._needed else None
        return self._reconcilers.get((resource, watched)) if watched in self._begun else None


class _Gang(NamedTuple):
    """Gang scheduler by name, with its rows in the table of child kinds."""

    name: str
    kinds: tuple[ChildKind, ...]


def _served(children: WatchedChildren) -> Sequence[ChildKind]:
    return children.caches.served


async def _wait_for(reflector: Reflector[Any]) -> None:
    while True:
        try:
            async with asyncio.timeout(_SYNC_SECONDS):
                await reflector.synced.wait()
                return
        except TimeoutError:
            is_unknown = reflector.resource == MXJOBS and reflector.trouble_code == _NOT_FOUND
            hint = ": is its CRD installed? (mxnet-operator crd | kubectl apply -f -)" if is_unknown else ""
            log.warning("still waiting: %s%s", _missing(reflector), hint)


def _missing(reflector: Reflector[Any]) -> str:
    where = f" in namespace {reflector.namespace}" if reflector.namespace else ""
    why = f": {reflector.trouble}" if reflector.trouble else ""
    return f"no list of {reflector.resource}{where} yet{why}"
