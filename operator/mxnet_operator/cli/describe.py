"""`mxjob describe`: one job in full: what was asked for, how far it has come, and what went wrong."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.api.printable import printable_lines
from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.connection import JobNameArgument, Target, connect
from mxnet_operator.cli.description import Heard, event_time, write_description
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.follow_logs import log_lines
from mxnet_operator.cli.jobs import PODS, get_job, pod_name, pod_selector, pods_of, replicas
from mxnet_operator.cli.replica_state import ReplicaState, first_failed, in_order, replica_state
from mxnet_operator.cli.times import moment

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

EXAMPLES = """
[bold]Example[/]

  mxjob describe digits -n team-a
"""

LOG_LINES: Final = 10


@asks_server
async def describe(target: Target, *, name: JobNameArgument) -> Exit:
    """Show a job's spec, conditions, replicas and events, and the last lines of the replica that failed first."""
    async with connect(target) as client:
        job = await get_job(client, target.namespace or client.namespace, name)
        pods = await client.list(PODS.path(job["metadata"]["namespace"]), pod_selector(job))
        states = in_order([replica_state(pod) for pod in pods_of(job, pods["items"])])
        events = await _events(client, job)
        failed = first_failed(states)
        lines = [] if failed is None else await _last_lines(client, job, failed)
    write_description(job, Heard(states, events, failed, lines))
    return Exit.OK


async def _events(client: "Client", job: dict[str, Any]) -> list[dict[str, Any]]:
    """What was told of the job and of its pods, those that are gone as well, oldest first.

    An earlier job of the name may have had pods of the same names: what was told before this one was made isn't its.
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
        return []  # whoever may read jobs may not always read events
    own = {pod_name(metadata["name"], replica) for replica in replicas(job)}
    made = moment(metadata["creationTimestamp"]) or datetime.now(UTC)
    events = of_job["items"] + [
        event for event in of_pods["items"] if event["involvedObject"].get("name") in own and event_time(event) >= made
    ]
    return sorted(events, key=event_time)


async def _last_lines(client: "Client", job: dict[str, Any], failed: ReplicaState) -> list[str]:
    stream = log_lines(client, job["metadata"]["namespace"], failed.pod, tail=LOG_LINES)
    return [part async for line in stream for part in printable_lines(line)]
