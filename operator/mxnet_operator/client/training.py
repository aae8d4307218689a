"""Where the training of a job is, from its command and the newest lines of its main replica's log."""

import asyncio
import contextlib
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.conditions import RUNNING, job_state
from mxnet_operator.client.follow_logs import log_lines
from mxnet_operator.client.jobs import main_replica, pod_name, pod_spec
from mxnet_operator.readers.training_log import TrainingLog, epochs_in_command

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

_LINES: Final = 500
_MOST_JOBS: Final = 20


def epochs_wanted(job: dict[str, Any]) -> int | None:
    """Return the number of epochs that the main replica's command asks for; None where it doesn't."""
    main = names.main_container(pod_spec(job, main_replica(job)).get("containers"))
    return epochs_in_command([*(main.get("command") or ()), *(main.get("args") or ())])


async def training_so_far(client: "Client", job: dict[str, Any]) -> TrainingLog:
    """Read the newest lines of the log, as far as the server allows."""
    from mxnet_operator.kube.errors import KubeError  # noqa: PLC0415

    written = 0.0
    training = TrainingLog(lambda: written)
    training.epochs_wanted = epochs_wanted(job)
    pod = pod_name(job["metadata"]["name"], main_replica(job))
    with contextlib.suppress(KubeError):
        async for line in log_lines(client, job["metadata"]["namespace"], pod, tail=_LINES, timestamps=True):
            stamp, _, text = line.partition(" ")
            with contextlib.suppress(ValueError):
                written = datetime.fromisoformat(stamp).timestamp()
            training.take(text)
    return training


async def running_trainings(client: "Client", jobs: list[dict[str, Any]]) -> dict[str, TrainingLog]:
    """Read how far the trainings of running jobs are, by the jobs' uids; of the twenty newest, as each is a request."""
    running = [job for job in jobs if job_state(job) == RUNNING]
    running.sort(key=lambda job: str(job["metadata"].get("creationTimestamp")), reverse=True)
    found = await asyncio.gather(*(training_so_far(client, job) for job in running[:_MOST_JOBS]))
    return {job["metadata"]["uid"]: training for job, training in zip(running, found, strict=False)}
