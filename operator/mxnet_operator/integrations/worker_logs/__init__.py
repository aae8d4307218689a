"""What workers' logs show of a training: how far it is, and where it stands still, as the fail-fast hook says there.

A controller that may not read logs, as without `components/worker-logs`, reports neither.
"""

import asyncio
import logging
import random
from collections import Counter
from datetime import timedelta
from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import MXJob
from mxnet_operator.client.training import READ_SECONDS, read_training, read_trainings
from mxnet_operator.integrations.integration import Integration, JobReader, ReaderContext
from mxnet_operator.integrations.worker_logs.policy import LogView, WorkerLogsPolicy
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.plan import Observed, PodView
from mxnet_operator.readers.training_log import TrainingLog, epochs_asked_for
from mxnet_operator.readers.worker_logs import MOST_WORKERS, slow_workers, stalled_workers

LOOK_EVERY: Final = 120.0
"""Seconds that a job runs before its log is read, and between two times."""
LOOK_AGAIN_WHERE_FORBIDDEN: Final = 600.0
COMPARE_EVERY: Final = 5
"""Of so many readings of a job, one compares the speeds of its workers."""
AT_A_TIME: Final = 2
"""Maximum number of jobs whose logs this process reads at the same time: a node that doesn't answer holds up no
other job."""
PUT_OFF: Final = 10.0
"""Minimum seconds until a job is looked at whose turn came while others were read; at most `LOOK_EVERY`, at random:
jobs that a new leader has seen first at the same moment spread over that time."""
LAST_LINES: Final = 50
"""Lines with which an epoch ends (its metrics, its time, a checkpoint), and speeds in the next one."""

log = logging.getLogger(__name__)


class _Look(msgspec.Struct):
    uid: str
    """UID of the first worker that runs."""
    again: float
    """When its log is to be read, on the reader's clock."""
    training: TrainingLog
    """What its log has said so far: a reading has only the last lines."""
    number: int = 0
    """How often its log was read."""


class LogReader(JobReader):
    """Reader of the last lines of each running job's first worker, and of the others' where that one stands still."""

    def __init__(self, context: ReaderContext, look_every: float, reading: "Counter[str]") -> None:
        """Create a reader that has read nothing; the time is in seconds, `reading` counts the jobs being read."""
        self._client, self._clock = context.client, context.clock
        self._look_every = look_every
        self._looks: dict[str, _Look] = {}
        self._reading = reading
        self._forbidden_until = float("-inf")

    async def observe(self, job: MXJob, _: bytes, observed: Observed) -> Observed:
        """Return the observation with what the logs show, where it was time to look, or without where none runs."""
        key, workers = job.metadata.key, workers_of(job, observed)
        first = next((each for each in workers if each.phase == "Running"), None)
        if first is None:
            self._looks.pop(key, None)
            return observed.with_fact(LogView())
        look = self._looks.get(key)
        if look is None or look.uid != first.uid:
            look = self._looks[key] = _Look(first.uid, self._clock() + self._look_every, TrainingLog())
        if self._clock() < look.again:
            return observed
        if self._reading.total() >= AT_A_TIME or self._clock() < self._forbidden_until:
            put_off = random.uniform(PUT_OFF, LOOK_EVERY)  # noqa: S311 - no secret
            look.again = max(self._clock() + put_off, self._forbidden_until)
            return observed
        self._reading[key] += 1
        try:
            return observed.with_fact(await self._view(job, first, workers, look))
        except (KubeError, TimeoutError) as error:  # Not known: the status stays as it is.
            log.debug("the workers' logs: %s", error, extra={"job": key})
            if isinstance(error, ApiError) and error.code == 403:
                self._forbidden_until = self._clock() + LOOK_AGAIN_WHERE_FORBIDDEN
            return observed
        finally:
            self._reading[key] -= 1
            look.again = max(self._clock() + self._look_every, self._forbidden_until)

    async def after(self, job: MXJob) -> timedelta | None:
        look = self._looks.get(job.metadata.key)
        return None if look is None else timedelta(seconds=max(look.again - self._clock(), 0.0))

    def forget(self, key: str) -> None:
        self._looks.pop(key, None)

    async def _view(self, job: MXJob, first: PodView, workers: list[PodView], look: _Look) -> LogView:
        """Return what the first worker that runs shows: the others matter if it stands still, and now and then."""
        namespace, training = job.metadata.namespace, look.training
        spec = with_defaults(job).spec.mx_replica_specs.get(names.WORKER)
        containers = None if spec is None else spec.template["spec"].get("containers")
        training.epochs_wanted = epochs_asked_for(names.main_container(containers)) or training.epochs_wanted
        unread: KubeError | TimeoutError | None = None
        try:
            async with asyncio.timeout(READ_SECONDS):
                await read_training(self._client, namespace, first.name, LAST_LINES, training)
        except (KubeError, TimeoutError) as error:  # its node may be dead: where the others stand is known all the same
            if isinstance(error, ApiError) and error.code == 403:
                raise
            unread, training.stall = error, ""
        compared = workers[:MOST_WORKERS]
        others = {label(each): each.name for each in compared if each is not first and each.phase == "Running"}
        if training.stall or unread is not None:
            logs = await read_trainings(self._client, namespace, others, 1)
            stalls = {worker: logs[worker].stall if worker in logs else "" for worker in map(label, compared)}
            training.stalled = stalled_workers(stalls | {label(first): training.stall})
            if unread is not None and not training.stalled:
                raise unread
        elif look.number % COMPARE_EVERY == 0:
            logs = await read_trainings(self._client, namespace, others, LAST_LINES) | {label(first): training}
            speeds = {worker: speed for worker, log in logs.items() if (speed := log.usual_speed()) is not None}
            training.slow_workers = slow_workers(speeds, {label(each): each.node_name for each in workers})
        look.number += 1
        status, rule = training.status(), job.spec.run_policy.early_stopping
        if rule is None:
            return LogView(status)
        judged = training.newest(rule.metric)
        if judged is None and (figures := training.reported(rule.start_epoch)):
            words = f"earlyStopping waits for {rule.metric}, but epochs report {', '.join(figures)}."
            status = msgspec.structs.replace(status, warnings=(*status.warnings, words))
        return LogView(status, judged)


def workers_of(job: MXJob, observed: Observed) -> list[PodView]:
    """Return the workers of a running job that weren't deleted, in order; none of any other job."""
    if not conditions.is_true(job.status.conditions, conditions.RUNNING):
        return []
    own = (pod for pod in observed.pods if pod.owner_uid == job.metadata.uid and pod.type == names.WORKER)
    return sorted((pod for pod in own if not pod.deleting), key=lambda pod: pod.index)


def label(pod: PodView) -> str:
    return f"worker-{pod.index}"


class WorkerLogs(Integration):
    """Integration of what scripts and the fail-fast hook write; it has no objects of its own."""

    name = "worker-logs"
    policy = WorkerLogsPolicy()

    def __init__(self, look_every: float = LOOK_EVERY) -> None:
        """Create an integration that looks at each running job every so many seconds."""
        self._look_every = look_every
        self._reading: Counter[str] = Counter()

    def reader(self, context: ReaderContext) -> JobReader:
        return LogReader(context, self._look_every, self._reading)
