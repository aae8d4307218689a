"""Stalled training: the fail-fast hook says in a worker's log where it stands still, and the status repeats it.

A controller that may not read logs, as without `components/stalls`, reports none.
"""

import asyncio
import logging
import random
from datetime import timedelta
from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.integration import Integration, JobReader, Surroundings
from mxnet_operator.integrations.stalls.policy import StallPolicy, Standstill
from mxnet_operator.kube.client import ApiError
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.plan import Observed, PodView
from mxnet_operator.readers.worker_logs import MOST_WORKERS, gang_stall, stall_in

FIRST_LOOK: Final = 300.0
"""Seconds that a job runs before its log is read: the hook says nothing earlier (`NOTICED_AFTER`)."""
LOOK_AGAIN: Final = 120.0
LOOK_AGAIN_WHERE_FORBIDDEN: Final = 600.0
READ_SECONDS: Final = 5.0
AT_A_TIME: Final = 2
"""Maximum number of jobs whose logs are read at the same time: a node that doesn't answer holds up no other job."""
PUT_OFF: Final = 10.0
"""Minimum seconds until a job is looked at whose turn came while others were read; at most `LOOK_AGAIN`, at random:
jobs that a new leader has seen first at the same moment spread over that time."""
LAST_LINE: Final[dict[str, str | int | bool]] = {"container": names.CONTAINER, "tailLines": 1, "limitBytes": 4096}

log = logging.getLogger(__name__)


class _Look(msgspec.Struct):
    uid: str
    """UID of the first worker that runs."""
    again: float
    """When its log is to be read, on the reader's clock."""


class StallReader(JobReader):
    """Reader of the last line of each running job's first worker, and of the others' where that one stands still."""

    def __init__(self, around: Surroundings, first_look: float, look_again: float) -> None:
        """Create a reader that has read nothing; times are in seconds."""
        self._client, self._clock = around.client, around.clock
        self._first_look, self._look_again = first_look, look_again
        self._looks: dict[str, _Look] = {}
        self._reading = 0
        self._forbidden_until = float("-inf")

    async def observe(self, job: MXJob, _: bytes, observed: Observed) -> Observed:
        """Return the observation with a standstill, where it was time to look, or with its end."""
        key, workers = job.metadata.key, workers_of(job, observed)
        first = min((each for each in workers if each.phase == "Running"), key=by_index, default=None)
        if first is None:
            self._looks.pop(key, None)
            return observed.with_fact(Standstill(""))
        look = self._looks.get(key)
        if look is None or look.uid != first.uid:
            look = self._looks[key] = _Look(first.uid, self._clock() + self._first_look)
        if self._clock() < look.again:
            return observed
        if self._reading >= AT_A_TIME or self._clock() < self._forbidden_until:
            put_off = random.uniform(PUT_OFF, LOOK_AGAIN)  # noqa: S311 - no secret
            look.again = max(self._clock() + put_off, self._forbidden_until)
            return observed
        self._reading += 1
        try:
            async with asyncio.timeout(READ_SECONDS):
                return observed.with_fact(Standstill(await self._standstill(job, first, workers)))
        except (KubeError, TimeoutError) as error:  # Not known: the condition stays as it is.
            log.debug("where the workers stand: %s", error, extra={"job": key})
            if isinstance(error, ApiError) and error.code == 403:
                self._forbidden_until = self._clock() + LOOK_AGAIN_WHERE_FORBIDDEN
            return observed
        finally:
            self._reading -= 1
            look.again = max(self._clock() + self._look_again, self._forbidden_until)

    async def after(self, job: MXJob) -> timedelta | None:
        """Return when to look at the job again."""
        look = self._looks.get(job.metadata.key)
        return None if look is None else timedelta(seconds=max(look.again - self._clock(), 0.0))

    def forget(self, key: str) -> None:
        """Drop what was read for a deleted job."""
        self._looks.pop(key, None)

    async def _standstill(self, job: MXJob, first: PodView, workers: list[PodView]) -> str:
        """Say where the workers stand still; empty where the first that runs does not: it would wait for the others."""
        stall = await self._stall(job, first)
        if not stall:
            return ""
        stalls = {label(first): stall}
        for worker in sorted(workers, key=by_index)[:MOST_WORKERS]:
            if worker is not first:
                stalls[label(worker)] = await self._stall(job, worker)
        return gang_stall(stalls)

    async def _stall(self, job: MXJob, worker: PodView) -> str:
        if worker.phase != "Running":
            return ""
        path = PODS.path(job.metadata.namespace, worker.name, "log")
        return stall_in((await self._client.get_bytes(path, LAST_LINE)).decode("utf-8", "replace"))


def workers_of(job: MXJob, observed: Observed) -> list[PodView]:
    """Return the workers of a running job that weren't deleted; none of any other job."""
    if not conditions.is_true(job.status.conditions, conditions.RUNNING):
        return []
    own = (pod for pod in observed.pods if pod.owner_uid == job.metadata.uid and pod.type == names.WORKER)
    return [pod for pod in own if not pod.deleting]


def label(pod: PodView) -> str:
    """Return the name of a worker in messages."""
    return f"worker-{pod.index}"


def by_index(pod: PodView) -> int:
    """Return the key by which workers are ordered."""
    return pod.index


class Stalls(Integration):
    """Integration of the fail-fast hook's reports; it has no objects of its own."""

    name = "stalls"
    policy = StallPolicy()
    rights = "operator/manifests/components/stalls/rbac.yaml"

    def __init__(self, *, first_look: float = FIRST_LOOK, look_again: float = LOOK_AGAIN) -> None:
        """Create an integration that looks at a job so many seconds after it began to run, and again and again."""
        self._first_look, self._look_again = first_look, look_again

    def reader(self, around: Surroundings) -> JobReader:
        """Return a reader of workers' last lines."""
        return StallReader(around, self._first_look, self._look_again)
