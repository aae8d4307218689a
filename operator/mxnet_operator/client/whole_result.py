"""The result of a job that is too long for its status: read from the log of the replica that reports it."""

import contextlib
from typing import TYPE_CHECKING, Any

from mxnet_operator.api import names
from mxnet_operator.client.jobs import PODS, main_replica, pod_name
from mxnet_operator.client.outage import READ_SILENCE_SECONDS, Outage, Retries
from mxnet_operator.readers.log_lines import LineSplitter
from mxnet_operator.readers.long_result import reference_in, text_of, with_result

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client


async def with_whole_result(client: "Client", job: dict[str, Any], *, outage: Outage | None = None) -> dict[str, Any]:
    """Return the job with its whole result in its status; as it is where that is there already, or lost with its pod.

    Raises:
        ApiUnavailable: the server was away for too long.
    """
    from mxnet_operator.kube.errors import ApiError, ApiUnavailable  # noqa: PLC0415

    wanted = reference_in(job)
    if wanted is None:
        return job
    metadata, retries = job["metadata"], Retries(outage or Outage())
    path = PODS.path(metadata["namespace"], pod_name(metadata["name"], main_replica(job)), "log")
    while True:
        splitter = LineSplitter()
        lines: list[bytes] = []
        try:
            params: dict[str, str | int | bool] = {"container": names.CONTAINER, "tailLines": wanted.tail_lines}
            async with contextlib.aclosing(client.stream(path, params, idle_timeout=READ_SILENCE_SECONDS)) as chunks:
                async for chunk in chunks:
                    lines += splitter.feed(chunk)
        except (ApiUnavailable, ApiError) as error:
            if isinstance(error, ApiError) and not error.is_transient:
                return job  # the pod is gone, or its log may not be read
            await retries.pause_or_raise(error)
            continue
        text = text_of(wanted, (line.decode("utf-8", "replace") for line in (*lines, splitter.rest)))
        return job if text is None else with_result(job, text)


__all__ = ["with_whole_result"]
