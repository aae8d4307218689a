"""`mxjob describe`: one job in full, with its replicas, events and the log of the replica that failed first."""

import asyncio
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api.conditions import RUNNING, job_state
from mxnet_operator.api.printable import printable_lines
from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.output.description import JobDetails, write_description
from mxnet_operator.cli.output.replica_state import ReplicaState, first_failed, in_order, replica_state
from mxnet_operator.cli.running.local_files import is_local, written
from mxnet_operator.cli.server.connection import JobNameArgument, Target, connect
from mxnet_operator.cli.server.job_kinds import get_job
from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.client.job_events import job_events
from mxnet_operator.client.pod_log import log_lines
from mxnet_operator.client.training import compare_workers, main_training
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.volumes import kept_volumes

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

EXAMPLES = """
[bold]Example[/]

  mxjob describe digits -n team-a
"""

LOG_LINES: Final = 10


@asks_server
async def describe(target: Target, *, name: JobNameArgument) -> Exit:
    """Show a job in full, with its replicas, events and files, and the last log lines of the first failed replica."""
    async with connect(target) as client:
        job = await get_job(client, target.namespace or client.namespace, name)
        pods = await JobClient(client).replica_pods(JobRef.of(job))
        states = in_order([replica_state(pod) for pod in pods])
        events = await job_events(client, job)
        failed = first_failed(states)
        lines = [] if failed is None else await _last_lines(client, job, failed)
        training = None
        if job_state(job) == RUNNING:
            training, _ = await main_training(client, job)
        workers = await compare_workers(client, job, training or TrainingLog())
        new = await asyncio.to_thread(written, job, pods) if is_local(client.server) else []
    files = [*map(str, new), *map(str, kept_volumes(job))]
    ranks = {replica: log.rank for replica, log in workers.items() if log.rank is not None}
    stacks = {replica: log.stack for replica, log in workers.items() if log.stack}
    write_description(job, JobDetails(states, events, failed, lines, files, ranks, training, stacks))
    return Exit.OK


async def _last_lines(client: "Client", job: dict[str, Any], failed: ReplicaState) -> list[str]:
    stream = log_lines(client, job["metadata"]["namespace"], failed.pod, tail=LOG_LINES)
    return [part async for line in stream for part in printable_lines(line)]
