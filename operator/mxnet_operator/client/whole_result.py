"""The result of a job that is too long for its status: read from the log of the replica that reports it."""

import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from mxnet_operator.client.jobs import main_replica, pod_name
from mxnet_operator.client.outage import Outage
from mxnet_operator.client.pod_log import PodLog
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.readers.long_result import Reference, reference_in, text_of, with_result

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client


async def with_whole_result(client: "Client", job: dict[str, Any], *, outage: Outage | None = None) -> dict[str, Any]:
    """Return the job with its whole result in its status; as it is where that is there already, or lost with its pod.

    Raises:
        ApiUnavailable: the server was away for too long.
    """
    wanted = reference_in(job)
    if wanted is None:
        return job
    metadata = job["metadata"]
    log = PodLog(client, metadata["namespace"], pod_name(metadata["name"], main_replica(job)), outage=outage)
    try:
        return await result_from(log.so_far(tail=wanted.tail_lines), wanted, job) or job
    except ApiError:  # the pod's node is gone, or its log may not be read
        return job


async def result_from(lines: AsyncGenerator[str], wanted: Reference, job: dict[str, Any]) -> dict[str, Any] | None:
    """Return the job with the result that these lines of a log have; None where they lack a part of it."""
    async with contextlib.aclosing(lines):
        text = text_of(wanted, [line async for line in lines])
    return None if text is None else with_result(job, text)


__all__ = ["result_from", "with_whole_result"]
