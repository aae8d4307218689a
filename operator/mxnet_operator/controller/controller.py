"""Controller of jobs: watch caches feed one work queue, and workers reconcile its keys while this process leads."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from mxnet_operator.api.kinds import ALL, MXJOB, Kind
from mxnet_operator.api.types import TrainingStatus
from mxnet_operator.client.resources import MXJOBS, parts_of, resource_of
from mxnet_operator.controller.children import KINDS, ChildKind
from mxnet_operator.controller.discovery import SYNC_SECONDS, Discovery
from mxnet_operator.controller.events import EventRecorder
from mxnet_operator.controller.executor import Executor
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.fair_semaphore import FairSemaphore
from mxnet_operator.controller.informers import WatchedChildren, WatchedJobs
from mxnet_operator.controller.instrumentation import ControllerObserver, JobEvent, Result
from mxnet_operator.controller.leases import Leases
from mxnet_operator.controller.projection import JobRecord
from mxnet_operator.controller.reconcile import Reconciler, is_stale
from mxnet_operator.controller.status_writer import StatusWriter
from mxnet_operator.integrations.child_kinds import Child
from mxnet_operator.integrations.integration import Integration
from mxnet_operator.integrations.registry import integrations as registered
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.discovery import is_served
from mxnet_operator.kube.errors import KubeError, WriteFencedError
from mxnet_operator.kube.lease import LeaderElector
from mxnet_operator.kube.queue import WorkQueue
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.supervision import keep_running
from mxnet_operator.plan import Policy
from mxnet_operator.plan.times import DEFAULT

DEFAULT_WORKERS: Final = 8
"""Maximum concurrent reconciliations, except ones that mostly wait for requests: they share one CPU."""
REST_SECONDS: Final = 0.1
"""Minimum seconds between two reconciliations of a job: the pods of a gang change together, with an event each."""
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
        integrations: Sequence[Integration] | None = None,
        policy: Policy = DEFAULT,
    ) -> None:
        """Create a controller for these namespaces (none: all) that sends no request before `run`.

        `client` is open and stays the caller's. `fail_fast_hook` is for clusters whose kubelets don't add the hook
        themselves, as the local one does. The CRDs of kinds other than MXJob are discovered every `discovery_interval`
        seconds until they are installed, those of optional children all the time. `integrations` are those of the
        registry by default. `policy` has the times that no field of a job sets.
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
        self.queue = WorkQueue(observer=self._observer, rest=REST_SECONDS)
        self._client, self._writer = client, client.fenced(self._may_write)
        self._requests = FairSemaphore()
        self._integrations = tuple(registered() if integrations is None else integrations)
        of_integrations = (kind for each in self._integrations for choice in each.choices for kind in choice)
        rows = (*child_kinds, *of_integrations)
        self._children = tuple(
            WatchedChildren(client, namespace, self._child_changed, rows) for namespace in namespaces or (None,)
        )
        optional = tuple(kind for kind in child_kinds if not kind.needed)
        self._discoveries = tuple(self._discovery(each.name, each.choices) for each in self._integrations)
        self._awaited = tuple(
            discovery for each, discovery in zip(self._integrations, self._discoveries, strict=True) if each.is_awaited
        )
        self._of_optional = tuple(self._discovery(str(kind.resource), ((kind,),)) for kind in optional)
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

    def _discovery(self, name: str, choices: Sequence[tuple[ChildKind, ...]]) -> Discovery:
        return Discovery(
            name,
            choices,
            self._client,
            self._children,
            interval=self._discovery_interval,
            changed=self._reconcile_all,
            on_crash=self._observer.crashed,
        )

    def _watch(self, kind: Kind) -> tuple[Reflector[Any], ...]:
        """Create the caches, the reconciler and the reflector for the jobs of a kind; return the reflectors to run."""
        resource, added = resource_of(kind), []
        # The address of a page names no kind: only MXJobs have one.
        policy = self._policy if kind is MXJOB else msgspec.structs.replace(self._policy, job_url_template="")
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
                    served=children.caches.served,
                ),
                recorder=EventRecorder(self._writer, kind=kind),
                on_status=self._observer.status_written,
                leases=Leases(jobs.reflector.heard_since),
                integrations=[
                    (integration, partial(discovery.state, children))
                    for integration, discovery in zip(self._integrations, self._discoveries, strict=True)
                ],
                statuses=self.statuses,
                policy=policy,
            )
            added.append(jobs)
        self._jobs += added
        return tuple(jobs.reflector for jobs in added)

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

    def jobs_by_state(self) -> Counter[tuple[str, str]]:
        """Count the cached jobs by namespace and state; the state is empty before the first status."""
        return Counter(record for jobs in self._jobs for record in jobs.states())

    def trainings(self) -> dict[str, TrainingStatus]:
        """Return what the logs of running jobs say of their trainings, by `namespace/name`."""
        return dict(each for jobs in self._jobs for each in jobs.trainings())

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
            for discovery in (*self._of_optional, *self._discoveries):
                self._keep(tasks, f"discovery of {discovery.name}", discovery.run)
            for namespace in self._needed:
                self._keep(tasks, f"namespace {namespace or 'all'}", partial(self._begin, namespace))
            await self._one_synced.wait()
            for discovery in self._awaited:
                await discovery.wait()
            self.synced.set()
            log.info("the caches are filled")
            elector = self.elector
            self._keep(tasks, "leader", self._lead if elector is None else lambda: elector.run(self._lead))

    async def _begin(self, namespace: str | None) -> None:
        """Begin to run the jobs of a namespace once its caches are filled, whatever keeps those of others empty."""
        for reflector in self._needed[namespace]:
            await _wait_for(reflector)
        self._one_synced.set()
        for discovery in self._awaited:
            await discovery.known.wait()
        self._begun.add(namespace)
        self._reconcile_all()

    def _keep(self, tasks: asyncio.TaskGroup, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Run a task until cancelled; log and count an unexpected error, and start it again."""
        tasks.create_task(keep_running(name, run, on_crash=self._observer.crashed), name=name)

    async def _watch_once_served(self, kind: Kind) -> None:
        """Run the jobs of a kind from when its CRD is installed, which may be now, later or never."""
        resource = resource_of(kind)
        while True:
            try:
                if await is_served(self._client, resource):
                    break
            except KubeError as error:
                log.debug("whether %s are served: %s", resource, error)
            await asyncio.sleep(self._discovery_interval)
        log.info("%s are served: reconciling them, too", resource)
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._watch(kind):
                self._keep(tasks, f"reflector {resource}", reflector.run)

    def _reconcile_all(self) -> None:
        """Enqueue every job, if this process leads: behind those that change."""
        for key in (key for jobs in self._jobs for key in jobs.keys if self._working):
            self.queue.add_low_priority(key)

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
        if not self._working or old == new:  # A kubelet also writes what no decision rests on.
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
            place = contextlib.ExitStack()  # left once, however often it is closed
            place.callback(places.release)
            tasks.create_task(self._work(key, place), name=f"reconcile {key}")

    async def _work(self, key: str, place: contextlib.ExitStack) -> None:
        with place:
            try:
                await self._look_at(key, place.close)
            finally:
                self.queue.done(key)

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


async def _wait_for(reflector: Reflector[Any]) -> None:
    while True:
        try:
            async with asyncio.timeout(SYNC_SECONDS):
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
