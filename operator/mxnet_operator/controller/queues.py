"""Kueue on this API server: found by discovery, its Workloads watched, its flavors and priority classes asked for.

Kueue need not be there, nor the controller be allowed to read any of it: a job that names a queue then says so.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from mxnet_operator.api.types import MXJob
from mxnet_operator.builders.queue_workload import GROUP
from mxnet_operator.controller.child_caches import ChildCaches
from mxnet_operator.controller.children import ChildKind
from mxnet_operator.controller.children.queue_workloads import QUEUE_WORKLOADS
from mxnet_operator.controller.informers import WatchedChildren
from mxnet_operator.kube.answers import Metadata, Shape
from mxnet_operator.kube.client import ApiError, Client
from mxnet_operator.kube.discovery import is_served, until_gone
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.resources import PRIORITY_CLASSES, Resource
from mxnet_operator.kube.supervision import keep_running
from mxnet_operator.plan import Observed, QueueSystem, flavors_wanted, priority_wanted, queue_of
from mxnet_operator.readers.kueue import QueuePriority, ResourceFlavor, Toleration, pairs

REMEMBERED: Final = 10.0
"""Seconds for which a flavor or class is taken for what it was, or for one that can't be read."""
_RIGHTS: Final = (
    "docs/kueue.md says what the controller has to be allowed: kubectl apply -f"
    " operator/manifests/components/kueue/rbac.yaml"
)

log = logging.getLogger(__name__)


class _FlavorSpec(Shape, frozen=True):
    node_labels: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class _Flavor(Shape, frozen=True):
    metadata: Metadata
    spec: _FlavorSpec = _FlavorSpec()


class _PriorityClass(Shape, frozen=True):
    metadata: Metadata
    value: int = 0
    global_default: bool = False


class _PriorityClasses(Shape, frozen=True):
    items: list[_PriorityClass]


class Queues:
    """Keeps the caches of Workloads filled while the server has any, in whichever version it has them."""

    def __init__(
        self,
        client: Client,
        children: Sequence[WatchedChildren],
        changed: Callable[[], None],
        on_crash: Callable[[str], None],
        interval: float,
    ) -> None:
        """Call `changed` when every job is to be reconciled; ask the server every `interval` seconds."""
        self._client, self._children = client, children
        self._changed, self._on_crash, self._interval = changed, on_crash, interval
        self._is_absent = False
        self._trouble = ""
        self._reflectors: dict[WatchedChildren, Reflector[Any]] = {}

    def system(self, children: WatchedChildren) -> QueueSystem:
        """Return what is known of Kueue now, where these children are watched."""
        if self._is_absent:
            return QueueSystem("Absent")
        reflector = self._reflectors.get(children)
        if reflector is None:
            return QueueSystem("Unknown", self._trouble)
        return QueueSystem("Served") if reflector.synced.is_set() else QueueSystem("Unknown", reflector.trouble)

    async def run(self) -> None:
        """Look for Kueue, and watch its Workloads while it is there, until cancelled."""
        while True:
            kind = await self._served()
            if kind is None:
                await asyncio.sleep(self._interval)
                continue
            log.info("%s are served in %s: jobs that name a queue wait for it", kind.resource, kind.resource.version)
            if self._is_absent:  # From now on a job without quota may not start, be Workloads readable or not.
                self._is_absent = False
                self._changed()
            try:
                async with asyncio.TaskGroup() as tasks:
                    watching = [tasks.create_task(self._watch(of, kind)) for of in self._children]
                    await until_gone(partial(is_served, self._client, kind.resource), self._interval)
                    for task in watching:
                        task.cancel()
            finally:
                self._reflectors.clear()
                for children in self._children:
                    children.end(kind)
            log.info("%s are no longer served in %s", kind.resource, kind.resource.version)

    async def _served(self) -> ChildKind | None:
        """Find the newest version of Workloads that is served; None where none is, or that is unknown."""
        try:
            for kind in QUEUE_WORKLOADS:
                if await is_served(self._client, kind.resource):
                    return kind
        except KubeError as error:
            self._trouble = str(error)
            return None
        self._trouble = ""
        if not self._is_absent:
            self._is_absent = True
            self._changed()
        return None

    async def _watch(self, children: WatchedChildren, kind: ChildKind) -> None:
        reflector = children.begin(kind)
        self._reflectors[children] = reflector
        async with asyncio.TaskGroup() as tasks:
            name = f"reflector {kind.resource}"
            tasks.create_task(keep_running(name, reflector.run, on_crash=self._on_crash), name=name)
            await reflector.synced.wait()
            children.caches.serve(kind, served=True)
            self._changed()


class QueueReader:
    """Reads what a reconciliation needs to know of a job's queue; safe to share between jobs."""

    def __init__(
        self,
        client: Client,
        caches: ChildCaches,
        system: Callable[[], QueueSystem],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`system` says what is known of Kueue."""
        self._client, self._caches, self._system, self._clock = client, caches, system, clock
        self._flavors: dict[str, tuple[float, ResourceFlavor]] = {}
        self._priorities: dict[QueuePriority, tuple[float, QueuePriority]] = {}

    async def observed(self, job: MXJob, observed: Observed) -> Observed:
        """Return what is observed of a job, with its place in its queue and what is to be known before it gets pods."""
        uid = job.metadata.uid
        found = next((each for kind in self._rows for each in self._caches.children(uid, kind.resource)), None)
        if not queue_of(job) and found is None:
            return observed
        observed = msgspec.structs.replace(observed, queues=self._system(), workload=found)
        flavors = [await self._flavor(name) for name in flavors_wanted(job, observed)]
        wanted = priority_wanted(job, observed)
        priority = await self._priority(wanted) if wanted is not None else None
        return msgspec.structs.replace(observed, flavors=tuple(flavors), queue_priority=priority)

    @property
    def _rows(self) -> list[ChildKind]:
        return [kind for kind in self._caches.served if kind in QUEUE_WORKLOADS]

    def _resource(self, plural: str) -> Resource:
        version = next(iter(self._rows)).resource.version
        return Resource(GROUP, version, plural, namespaced=False)

    async def _flavor(self, name: str) -> ResourceFlavor:
        now = self._clock()
        known = self._flavors.get(name)
        if known is not None and now - known[0] < REMEMBERED:
            return known[1]
        try:
            read = await self._client.get_as(self._resource("resourceflavors").path(name=name), _Flavor)
            labels, tolerations = pairs(read.spec.node_labels), tuple(read.spec.tolerations or ())
            found = ResourceFlavor(name=name, node_labels=labels, tolerations=tolerations)
        except ApiError as error:
            found = ResourceFlavor(name=name, problem=_problem(error))
        self._flavors[name] = (now, found)
        return found

    async def _priority(self, wanted: QueuePriority) -> QueuePriority:
        now = self._clock()
        known = self._priorities.get(wanted)
        if known is not None and now - known[0] < REMEMBERED:
            return known[1]
        found = await self._read_priority(wanted)
        self._priorities[wanted] = (now, found)
        return found

    async def _read_priority(self, wanted: QueuePriority) -> QueuePriority:
        replace = msgspec.structs.replace
        try:
            if wanted.kind == "WorkloadPriorityClass":
                path = self._resource("workloadpriorityclasses").path(name=wanted.name)
                return replace(wanted, value=(await self._client.get_as(path, _PriorityClass)).value)
            if wanted.name:
                path = PRIORITY_CLASSES.path(name=wanted.name)
                return replace(wanted, value=(await self._client.get_as(path, _PriorityClass)).value)
            classes = (await self._client.get_as(PRIORITY_CLASSES.path(), _PriorityClasses)).items
        except ApiError as error:
            if error.code == 404 and not wanted.name:
                return wanted  # A server without priority classes has no default.
            return replace(wanted, problem=_problem(error))
        defaults = [each for each in classes if each.global_default]
        lowest = min(defaults, key=lambda each: each.value, default=None)
        return wanted if lowest is None else replace(wanted, name=lowest.metadata.name, value=lowest.value)


def _problem(error: ApiError) -> str:
    """Say what a user can do about an answer.

    Raises:
        ApiError: the server may answer otherwise a little later.
    """
    if error.code == 403:
        return f"{error.message}. {_RIGHTS}"
    if error.code == 404:
        return error.message
    raise error
