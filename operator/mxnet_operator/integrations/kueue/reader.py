"""What a reconciliation has to know of a job's queue: its Workload, and the flavors and priority classes of Kueue."""

from typing import Final

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

RIGHTS: Final = "operator/manifests/components/kueue/rbac.yaml"
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
        """Create a reader that remembers nothing."""
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
        flavors = [await self._flavor(name) for name in flavors_wanted(job, observed)]
        wanted = priority_wanted(job, observed)
        priority = await self._priority(wanted) if wanted is not None else None
        return observed.with_fact(msgspec.structs.replace(state, flavors=tuple(flavors), priority=priority))

    def _resource(self, plural: str) -> Resource:
        version = next(iter(self._context.served())).resource.version
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
        return f"{error.message}. docs/kueue.md says what the controller has to be allowed: kubectl apply -f {RIGHTS}"
    if error.code == 404:
        return error.message
    raise error
