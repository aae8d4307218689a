"""The result of a job that is too long for its status: read from the log of the replica that reports it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mxnet_operator.client.jobs import main_replica, pod_name
from mxnet_operator.client.outage import Outage
from mxnet_operator.client.pod_log import PodLog
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.readers.long_result import Reference, reference_in, text_of, with_result

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client


async def with_whole_result(
    client: "Client",
    job: dict[str, Any],
    wanted: Reference | None = None,
    *,
    replica: str | None = None,
    outage: Outage | None = None,
    on_loss: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """Return the job with its whole result in its status; as it is where that is there already, or lost with its pod.

    `wanted` refers to the result, by default as the job's status does; `replica` reports it, by default the main one.
    `on_loss` is called with why the result can't be had.

    Raises:
        ApiUnavailable: the server was away for too long.
    """
    wanted = wanted or reference_in(job)
    if wanted is None:
        return job
    metadata = job["metadata"]
    pod = pod_name(metadata["name"], replica or main_replica(job))
    log = PodLog(client, metadata["namespace"], pod, outage=outage)
    try:
        text = text_of(wanted, [line async for line in log.so_far(tail=wanted.tail_lines)])
    except ApiError as error:  # the pod's node is gone, or its log may not be read
        on_loss(f"The log of {pod}, which has the job's result, could not be read: {error}")
        return job
    if text is None:
        on_loss(wanted.loss)
        return job
    return with_result(job, text)
