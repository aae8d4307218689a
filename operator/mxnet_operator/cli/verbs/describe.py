"""`mxjob describe`: one job in full, with its replicas, events and the log of the replica that failed first."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api.printable import printable_lines
from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.output.description import JobDetails, event_time, write_description
from mxnet_operator.cli.output.replica_state import ReplicaState, first_failed, in_order, replica_state
from mxnet_operator.cli.output.times import moment
from mxnet_operator.cli.server.connection import JobNameArgument, Target, connect
from mxnet_operator.cli.server.job_kinds import get_job
from mxnet_operator.client.follow_logs import log_lines
from mxnet_operator.client.jobs import PODS, pod_name, pod_selector, pods_of, replicas

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

EXAMPLES = """
[bold]Example[/]

  mxjob describe digits -n team-a
"""

LOG_LINES: Final = 10


@asks_server
async def describe(target: Target, *, name: JobNameArgument) -> Exit:
    """Show a job's spec, conditions, replicas and events, and the last log lines of the replica that failed first."""
    async with connect(target) as client:
        job = await get_job(client, target.namespace or client.namespace, name)
        pods = await client.list(PODS.path(job["metadata"]["namespace"]), pod_selector(job))
        states = in_order([replica_state(pod) for pod in pods_of(job, pods["items"])])
        events = await _events(client, job)
        failed = first_failed(states)
        lines = [] if failed is None else await _last_lines(client, job, failed)
    write_description(job, JobDetails(states, events, failed, lines))
    return Exit.OK


async def _events(client: "Client", job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of the job and of its pods, deleted ones included, oldest first.

    An earlier job of the same name may have had pods of the same names: events before this job's creation are left out.
    """
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415
    from mxnet_operator.kube.resources import EVENTS  # noqa: PLC0415

    metadata = job["metadata"]
    path = EVENTS.path(metadata["namespace"])
    try:
        of_job = await client.list(path, {"fieldSelector": f"involvedObject.uid={metadata['uid']}"})
        of_pods = await client.list(path, {"fieldSelector": "involvedObject.kind=Pod"})
    except ApiError as error:
        if error.code != 403:
            raise
        return []  # permission to read jobs does not imply permission to read events
    own = {pod_name(metadata["name"], replica) for replica in replicas(job)}
    made = moment(metadata["creationTimestamp"]) or datetime.now(UTC)
    events = of_job["items"] + [
        event for event in of_pods["items"] if event["involvedObject"].get("name") in own and event_time(event) >= made
    ]
    return sorted(events, key=event_time)


async def _last_lines(client: "Client", job: dict[str, Any], failed: ReplicaState) -> list[str]:
    stream = log_lines(client, job["metadata"]["namespace"], failed.pod, tail=LOG_LINES)
    return [part async for line in stream for part in printable_lines(line)]
