"""What a reconciliation has to know of a job's queue: its Workload, and the flavors and priority classes of Kueue."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec

from mxnet_operator.api.pod_additions import Toleration, pairs
from mxnet_operator.api.queue_labels import queue_of
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.integration import JobReader, ReaderContext
from mxnet_operator.integrations.kueue.policy import flavors_wanted, priority_wanted
from mxnet_operator.integrations.kueue.workload import GROUP, QueuePriority, QueueState, ResourceFlavor
from mxnet_operator.kube.answers import Metadata, Shape
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.kube.resources import PRIORITY_CLASSES, Resource
from mxnet_operator.plan import Observed

_RIGHTS: Final = "operator/manifests/components/kueue/rbac.yaml"
K = TypeVar("K")
V = TypeVar("V")

REMEMBERED: Final = 10.0
"""Seconds for which a flavor or class is taken for what it was, or for one that can't be read."""


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


class QueueReader(JobReader):
    """Reader of the queues of jobs; flavors and classes are shared between jobs and remembered for a while."""

    def __init__(self, context: ReaderContext) -> None:
        self._client, self._context, self._clock = context.client, context, context.clock
        self._flavors: dict[str, tuple[float, ResourceFlavor]] = {}
        self._priorities: dict[QueuePriority, tuple[float, QueuePriority]] = {}

    async def observe(self, job: MXJob, _: bytes, observed: Observed) -> Observed:
        """Return the observation with the job's queue, and with what is to be known before it gets pods."""
        of_job = (self._context.children(job.metadata.uid, kind.resource) for kind in self._context.served())
        workload = next((each for found in of_job for each in found), None)
        if not queue_of(job) and workload is None:
            return observed
        state = QueueState(kinds=self._context.state(), workload=workload)
        observed = observed.with_fact(state)
        wanted = flavors_wanted(job, observed)
        flavors = [await self._remembered(self._flavors, name, self._flavor) for name in wanted]
        state = msgspec.structs.replace(state, flavors=tuple(flavors))
        if (asked := priority_wanted(job, observed)) is not None:
            read = await self._remembered(self._priorities, asked, self._priority)
            state = msgspec.structs.replace(state, priority=read)
        return observed.with_fact(state)

    async def _remembered(self, known: dict[K, tuple[float, V]], key: K, read: Callable[[K], Awaitable[V]]) -> V:
        now = self._clock()
        if (found := known.get(key)) is None or now - found[0] >= REMEMBERED:
            found = known[key] = (now, await read(key))
        return found[1]

    def _resource(self, plural: str) -> Resource:
        version = next(iter(self._context.served())).resource.version
        return Resource(GROUP, version, plural, namespaced=False)

    async def _flavor(self, name: str) -> ResourceFlavor:
        try:
            read = await self._client.get_as(self._resource("resourceflavors").path(name=name), _Flavor)
        except ApiError as error:
            return ResourceFlavor(name=name, problem=_problem(error))
        labels, tolerations = pairs(read.spec.node_labels), tuple(read.spec.tolerations or ())
        return ResourceFlavor(name=name, node_labels=labels, tolerations=tolerations)

    async def _priority(self, wanted: QueuePriority) -> QueuePriority:
        replace = msgspec.structs.replace
        try:
            if wanted.name:
                is_of_kueue = wanted.kind == "WorkloadPriorityClass"
                classes_of = self._resource("workloadpriorityclasses") if is_of_kueue else PRIORITY_CLASSES
                read = await self._client.get_as(classes_of.path(name=wanted.name), _PriorityClass)
                return replace(wanted, value=read.value)
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
        return f"{error.message}. docs/kueue.md says what the controller has to be allowed: kubectl apply -f {_RIGHTS}"
    if error.code == 404:
        return error.message
    raise error
