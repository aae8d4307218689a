"""Places of waiting jobs in queues of Kueue, read from its visibility API, which can't be watched.

Each LocalQueue in which jobs wait is read every one and a half seconds. Kueue need not serve this API, nor the
controller be allowed to read it: jobs then say no place, and one line of the log says why.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Final

import msgspec

from mxnet_operator.api.types import MXJob
from mxnet_operator.kube.answers import Shape
from mxnet_operator.kube.backoff import Backoff
from mxnet_operator.kube.client import ApiError, Client
from mxnet_operator.kube.discovery import is_served
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan import Observed, QueuePlace, place_wanted, queue_of, queue_place

INTERVAL: Final = 1.5
"""Seconds between two reads of a queue."""
PAGE: Final = 1000
"""Workloads per page, as many as Kueue returns by default."""
PAGES: Final = 10
"""Maximum pages of one queue: the place of a job after them is unknown."""
_AT_ONCE: Final = 4
"""Maximum concurrent requests: Kueue sorts a whole ClusterQueue for each."""
_TIMEOUT: Final = 5.0
"""Timeout of a read in seconds."""
_BACKOFF: Final = Backoff(first=4.0, longest=60.0)
_GROUP: Final = "visibility.kueue.x-k8s.io"
_VERSIONS: Final = ("v1beta2", "v1beta1")

log = logging.getLogger(__name__)


class _Metadata(Shape, frozen=True):
    name: str
    namespace: str


class _PendingWorkload(Shape, frozen=True):
    metadata: _Metadata
    position_in_cluster_queue: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class _Summary(Shape, frozen=True):
    """PendingWorkloadsSummary of a LocalQueue.

    In Kueue 0.15.2 it includes the Workloads of LocalQueues of the same name in other namespaces.
    """

    items: list[_PendingWorkload] | None


class _Queue:
    """LocalQueue in which jobs wait."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace, self.name = namespace, name
        self.jobs: dict[str, str] = {}
        """Keys of the jobs by the names of their Workloads."""
        self.places: dict[str, QueuePlace] = {}
        """Places by the names of Workloads."""
        self.failures = 0
        """Failed reads in succession."""
        self.read_at = 0.0


class QueuePlaces:
    """Places of all jobs of a controller that wait in queues of Kueue; reads nothing while no job waits."""

    def __init__(
        self,
        client: Client,
        requeue: Callable[[str], None],
        *,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`requeue` is called with the key of each job whose place is another, or is no longer known."""
        self._client, self._requeue, self._interval, self._clock = client, requeue, interval, clock
        self._queues: dict[tuple[str, str], _Queue] = {}
        self._waits: dict[str, tuple[_Queue, str]] = {}
        """Queue and Workload of each waiting job, by its key."""
        self._some_wait = asyncio.Event()
        self._version = ""
        """Version in which the API is served; empty while that is unknown, or it isn't."""
        self._failures = 0
        self._discover_at = 0.0
        self._reported = False

    def place_of(self, key: str, job: MXJob, observed: Observed) -> QueuePlace | None:
        """Record whether the job with this key waits in a queue; return its place, None where that is unknown."""
        workload = place_wanted(job, observed)
        if not workload:
            self.forget(key)
            return None
        where = (job.metadata.namespace, queue_of(job))
        known = self._waits.get(key)
        if known is None or known[1] != workload or known[0] is not self._queues.get(where):
            self.forget(key)
            queue = self._queues.setdefault(where, _Queue(*where))
            queue.jobs[workload] = key
            self._waits[key] = (queue, workload)
            self._some_wait.set()
        return self._queues[where].places.get(workload)

    def forget(self, key: str) -> None:
        """Drop a job that waits in no queue, is deleted or can't be run."""
        queue, workload = self._waits.pop(key, (None, ""))
        if queue is None:
            return
        queue.jobs.pop(workload, None)
        queue.places.pop(workload, None)
        if not queue.jobs:
            del self._queues[queue.namespace, queue.name]
        if not self._queues:
            self._some_wait.clear()

    def clear(self) -> None:
        """Drop everything, at the end of a term of leadership."""
        self._queues.clear()
        self._waits.clear()
        self._some_wait.clear()
        self._reported = False

    async def run(self) -> None:
        """Read the places of waiting jobs again and again, until cancelled."""
        while True:
            await self._some_wait.wait()
            await self.read()
            await asyncio.sleep(self._interval)

    async def read(self) -> None:
        """Read the places in each queue that is due."""
        version = self._version or await self._discovered()
        if not version:
            for queue in self._queues.values():
                self._learn(queue, {})
            return
        now, slots = self._clock(), asyncio.Semaphore(_AT_ONCE)
        due = [queue for queue in self._queues.values() if queue.read_at <= now]
        async with asyncio.TaskGroup() as tasks:
            for queue in due:
                name = f"places in queue {queue.namespace}/{queue.name}"
                tasks.create_task(self._read_queue(queue, version, slots), name=name)
        if due and not any(queue.failures for queue in self._queues.values()):
            self._reported = False

    async def _discovered(self) -> str:
        """Find the newest version in which the API is served; empty where none is, or that is unknown."""
        if self._clock() < self._discover_at:
            return ""
        try:
            async with asyncio.timeout(_TIMEOUT):
                for version in _VERSIONS:
                    if await is_served(self._client, Resource(_GROUP, version, "localqueues")):
                        self._version, self._failures = version, 0
                        return version
            why = f"{_GROUP} is not served"
        except (KubeError, TimeoutError) as error:
            why = _in_words(error)
        self._failures += 1
        self._discover_at = self._clock() + _BACKOFF.delay(self._failures)
        self._report(why)
        return ""

    async def _read_queue(self, queue: _Queue, version: str, slots: asyncio.Semaphore) -> None:
        try:
            async with slots, asyncio.timeout(_TIMEOUT):
                found = await self._pages(queue, version)
        except (KubeError, TimeoutError) as error:
            found = {}
            queue.failures += 1
            queue.read_at = self._clock() + _BACKOFF.delay(queue.failures)
            if isinstance(error, ApiError) and error.code == 404:  # no such queue, or the API is no longer served
                self._version = ""
                log.debug("queue %s/%s: %s", queue.namespace, queue.name, error)
            else:
                self._report(_in_words(error))
        else:
            queue.failures, queue.read_at = 0, 0.0
        self._learn(queue, found)

    async def _pages(self, queue: _Queue, version: str) -> Mapping[str, QueuePlace]:
        """Read the places in a queue by the names of Workloads."""
        path = Resource(_GROUP, version, "localqueues").path(queue.namespace, queue.name, "pendingworkloads")
        found: dict[str, QueuePlace] = {}
        for page in range(PAGES):
            answer = await self._client.get_as(path, _Summary, {"limit": PAGE, "offset": page * PAGE})
            items = answer.items or []
            found |= {
                each.metadata.name: queue_place(each.position_in_cluster_queue)
                for each in items
                if each.metadata.namespace == queue.namespace
            }
            if len(items) < PAGE or queue.jobs.keys() <= found.keys():
                break
        return found

    def _learn(self, queue: _Queue, found: Mapping[str, QueuePlace]) -> None:
        if self._queues.get((queue.namespace, queue.name)) is not queue:  # Nobody waits there any more.
            return
        old, queue.places = queue.places, {name: found[name] for name in queue.jobs if name in found}
        for workload, key in queue.jobs.items():
            if old.get(workload) != queue.places.get(workload):
                self._requeue(key)

    def _report(self, why: str) -> None:
        log.log(
            logging.DEBUG if self._reported else logging.INFO,
            "jobs don't say how many come before them in a queue of Kueue (docs/kueue.md): %s",
            why,
        )
        self._reported = True


def _in_words(error: KubeError | TimeoutError) -> str:
    return str(error) or f"no answer within {_TIMEOUT:.0f} s"
