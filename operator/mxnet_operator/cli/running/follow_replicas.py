"""Live display of a job's pods, and what its workers' logs show together, while a command waits for the job."""

import asyncio
import contextlib
import itertools
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from mxnet_operator.cli.interrupts import beside
from mxnet_operator.cli.output.progress import LiveProgress, Progress
from mxnet_operator.cli.server.connection import Client
from mxnet_operator.client.jobs import collections, pod_selector
from mxnet_operator.client.outage import Outage
from mxnet_operator.client.training import compare_workers
from mxnet_operator.kube.errors import KubeError
from mxnet_operator.kube.resources import PODS

_LOOK: Final = 10.0
"""Seconds between two looks at whether a worker stands still."""
_LOOKS_AT_ALL: Final = 3
"""Looks for one at the logs of all workers."""


def replicas_shown(
    client: Client, job: dict[str, Any], shown: Progress, outage: Outage
) -> AbstractAsyncContextManager[Any]:
    """Show the job's pods for the length of the body, on a terminal: for a pipe their counts are enough."""
    return beside(_follow(client, job, shown, outage)) if isinstance(shown, LiveProgress) else contextlib.nullcontext()


def rest_of_log(job: dict[str, Any], replica: str) -> str:
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    return (
        f"{replica}: the rest of its log was not received; read all of it with: "
        f"mxjob logs {name} --replica {replica} -n {namespace}"
    )


def gone_text(job: dict[str, Any], outage: Outage, otherwise: str) -> str:
    if not outage.longest:
        return otherwise
    return f"job {job['metadata']['name']} is gone: the API server came back without it"


async def _follow(client: Client, job: dict[str, Any], shown: LiveProgress, outage: Outage) -> None:
    path = PODS.path(job["metadata"]["namespace"])
    try:
        async with contextlib.aclosing(collections(client, path, pod_selector(job), outage=outage)) as changes:
            async for pods in changes:
                shown.pods(list(pods.values()))
    except KubeError as error:
        shown.note(f"the replicas can't be shown: {error}")


async def show_comparison(client: Client, job: dict[str, Any], shown: Progress) -> None:
    """Show where all workers stand still, and which are slow, each once; runs until it is cancelled."""
    training, stall, said, slow_said = shown.training, "", "", False
    for look in itertools.count():
        await asyncio.sleep(_LOOK)
        if training.stall in {"", said} and look % _LOOKS_AT_ALL:
            continue
        await compare_workers(client, job, training)
        before, stall = stall, training.stall
        if stall == before != said:  # all workers had the time to say where they stand
            said = stall
            namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
            if stall:
                shown.note(f"{stall}; their stacks: mxjob logs {name} --replica all -n {namespace}")
        if training.slow and not slow_said:
            shown.note(training.slow)
            slow_said = True
