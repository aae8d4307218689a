"""Live display of a job's pods while a command waits for the job."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from mxnet_operator.cli.output.progress import Progress
from mxnet_operator.client.jobs import PODS, collections, pod_selector

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client


@contextlib.asynccontextmanager
async def replicas_shown(client: "Client", job: dict[str, Any], shown: Progress) -> AsyncIterator[None]:
    """Show the job's pods in `shown` for the length of the body, if it draws replicas."""
    if not shown.draws_replicas:
        yield
        return
    following = asyncio.create_task(_follow(client, job, shown))
    try:
        yield
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def rest_of_log(job: dict[str, Any], replica: str) -> str:
    """Return what to say of a replica whose log was not shown to its end."""
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    return (
        f"{replica}: the rest of its log was not received; read all of it with: "
        f"mxjob logs {name} --replica {replica} -n {namespace}"
    )


async def _follow(client: "Client", job: dict[str, Any], shown: Progress) -> None:
    from mxnet_operator.kube.errors import KubeError  # noqa: PLC0415

    path = PODS.path(job["metadata"]["namespace"])
    try:
        async with contextlib.aclosing(collections(client, path, pod_selector(job))) as changes:
            async for pods in changes:
                shown.pods(list(pods.values()))
    except KubeError as error:
        shown.note(f"the replicas can't be shown: {error}")
