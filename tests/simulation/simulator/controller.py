"""A controller process of a simulation: the real Reconciler and Executor over caches that the schedule feeds."""

import asyncio
from typing import Any

import msgspec
from reconcilers import make_reconciler
from simulator.api import CHILDREN, GANGS, KEY, QUEUE_WORKLOAD, Api, Object
from simulator.clock import Clock
from simulator.feed import Feed
from simulator.lives import owner_of
from simulator.transport import Fault, SimulatedClient, SimulatedTransport

from mxnet_operator.client.resources import MXJOBS
from mxnet_operator.controller.child_caches import ChildCaches
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.projection import JobRecord, project_job
from mxnet_operator.integrations.argo import Argo
from mxnet_operator.integrations.child_kinds import KindsState
from mxnet_operator.integrations.gangs import Gangs
from mxnet_operator.integrations.kueue import Kueue
from mxnet_operator.kube import resources as kube
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.errors import KubeError

RETRY = 1.0
"""Seconds until a job whose look failed is looked at again."""


class Seen(msgspec.Struct, frozen=True):
    """What a controller knew when it last began to look."""

    job: Object
    pods: dict[str, int]
    """The versions of the job's pods, by uid."""
    children: dict[str, int]
    """How many children of the job that are no pods, by kind."""
    revision: int
    """The server's when it began to look, whatever of that it had heard."""
    workload: int = 0
    """The version of the job's Workload; 0 where it knew of none."""


class Controller:
    """One process: it can die, and comes back with nothing but what it lists."""

    def __init__(
        self,
        name: str,
        api: Api,
        clock: Clock,
        acting: Any,
        *,
        has_queues: bool = False,
    ) -> None:
        self.name = name
        self._api, self._clock, self._acting = api, clock, acting
        self._has_queues = has_queues
        self.is_blind = False
        """Whether it may not list Workloads."""
        self.seen: Seen | None = None
        self._look: asyncio.Task[None] | None = None
        self._start()

    def _start(self) -> None:
        self.wanted = True
        self.due: float | None = None
        self.has_failed = False
        """Whether its last look did."""
        self._has_synced = False
        self._transport = SimulatedTransport(
            self._api, lambda begins: self._acting(self if begins else None), self._note_listed
        )
        jobs: Indexer[JobRecord] = Indexer()
        rows = (*CHILDREN, QUEUE_WORKLOAD) if self._has_queues else CHILDREN
        children = ChildCaches(rows)
        for row in rows:
            children.serve(row, served=row is not QUEUE_WORKLOAD or not self.is_blind)
        store = self._api.store
        self.feeds = {
            "jobs": Feed(store, self._api.jobs, jobs, project_job, self._changed),
            **{
                row.resource.plural: Feed(
                    store, self._api.resource_of(row), children.by_resource[row.resource], row.project, self._changed
                )
                for row in rows
            },
        }
        self._jobs, self._children = jobs, children
        client = SimulatedClient(self._transport)
        caches: dict[Any, Indexer[Any]] = {MXJOBS: jobs, **children.by_resource}
        writes = OwnWrites(caches, self._clock.monotonic)
        self._reconciler = make_reconciler(
            client,
            jobs,
            children,
            writes,
            integrations=(
                (Argo(), lambda: KindsState("Absent")),
                (Kueue(), self._queue_system),
                (Gangs((GANGS,)), lambda: KindsState("Served")),
            ),
            now=self._clock.wall(self.name),
            clock=self._clock.monotonic,
        )

    def hear(self) -> None:
        self.wanted |= self._has_queues and not self._has_synced  # Once Workloads are known, each job is looked at.
        self._has_synced = True
        for feed in self.feeds.values():
            feed.hear()

    def be_blind(self, blind: bool) -> None:
        """Lose or regain the right to list Workloads."""
        if self._has_queues and self.is_blind != blind:
            self.is_blind = blind
            self._children.serve(QUEUE_WORKLOAD, served=not blind)
            self._changed(KEY)

    def _queue_system(self) -> KindsState:
        if not self._has_queues:
            return KindsState("Absent")
        if self.is_blind:
            return KindsState("Unknown", "workloads is forbidden")
        return KindsState("Served" if self._has_synced else "Unknown")

    @property
    def held(self) -> bool:
        """Whether a look is under way, one of its requests on hold."""
        return self._look is not None

    @property
    def is_due(self) -> bool:
        return self.wanted or (self.due is not None and self.due <= self._clock.seconds)

    async def look(self, fault: Fault | None = None) -> None:
        """Look at the job once, as a worker that takes it from the queue; not while an earlier look is on hold."""
        if self._look is not None:
            return
        self.wanted, self.due = False, None
        self._note_seen()
        self._transport.begin(fault)
        if fault is None or fault.kind not in ("held", "dies before", "dies after"):
            await self._reconcile()
            return
        self._look = asyncio.create_task(self._reconcile())
        await self._go_on()

    async def release(self) -> None:
        """Let the request that is on hold go out."""
        if self._look is not None:
            self._transport.stopped.clear()
            self._transport.released.set()
            await self._go_on()

    async def die(self) -> None:
        """The process ends at once, whatever it was doing, and another one starts."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.gather(self._look, return_exceptions=True)
            self._look = None
        self._start()

    async def _go_on(self) -> None:
        assert self._look is not None
        stopped = asyncio.create_task(self._transport.stopped.wait())
        await asyncio.wait({self._look, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if self._look.done():
            look, self._look = self._look, None
            await look
        elif self._transport.died:
            await self.die()
        else:
            for _ in range(40):  # The other requests that are under way are answered meanwhile.
                await asyncio.sleep(0)

    async def _reconcile(self) -> None:
        try:
            again = await self._reconciler.reconcile(KEY)
        except KubeError:
            self.due, self.has_failed = self._clock.seconds + RETRY, True
        else:
            self.has_failed = False
            if again is not None:
                self.due = self._clock.seconds + max(again.total_seconds(), 0.0)

    def _note_seen(self) -> None:
        record = self._jobs.get(KEY)
        if record is None:
            self.seen = None
            return
        assert record.raw is not None, "the simulation has no job too large for the cache"
        job = msgspec.json.decode(record.raw)
        uid = job["metadata"]["uid"]
        pods = {
            pod.uid: int(self._children.pods.version(f"default/{pod.name}") or 0)
            for pod in self._children.children(uid, kube.PODS)
        }
        kinds = [row.resource for row in CHILDREN if row.rule is not None]
        others = {each.plural: len(self._children.children(uid, each)) for each in kinds}
        workloads = self._children.children(uid, QUEUE_WORKLOAD.resource) if self._sees_queues else ()
        workload = next((int(each.resource_version) for each in workloads), 0)
        self.seen = Seen(job, pods, others, self._api.store.storage.revision, workload)

    @property
    def _sees_queues(self) -> bool:
        return self._has_queues and self._has_synced and not self.is_blind

    @property
    def lost_a_reply(self) -> bool:
        """Whether it doesn't know what became of one of its writes."""
        return self._transport.lost_a_reply

    def _note_listed(self, name: str) -> None:
        """It asked for the pod of this name, or for all, as they are now."""
        assert self.seen is not None
        uid = self.seen.job["metadata"]["uid"]
        found = [pod["metadata"] for pod in self._api.pods() if owner_of(pod) == uid]
        pods = {each["uid"]: int(each["resourceVersion"]) for each in found if name in ("", each["name"])}
        if name:
            pods = {**self.seen.pods, **pods}
        self.seen = msgspec.structs.replace(self.seen, pods=pods)

    def _changed(self, _: str) -> None:
        self.wanted = True
