"""What becomes of a job whose follower is interrupted: deleted, kept, or as an Argo Workflow's state has it."""

import asyncio
import os
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from mxnet_operator.cli.argo_workflow import step_time_is_over, why_unwanted
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.jobs import NotOursError, delete_if, until_gone
from mxnet_operator.cli.run_outputs import Record
from mxnet_operator.cli.terminal import say

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

_GRACE: Final = 20.0
"""Seconds for asking a workflow and deleting its job: less than the 30 after which Kubernetes kills a pod."""


Ours = Callable[[dict[str, Any]], bool]
"""Whether a job, as it is just before its deletion, is still this run's."""


class OnInterrupt(StrEnum):
    """What becomes of the job when its follower is interrupted."""

    DELETE = "delete"
    KEEP = "keep"


async def part(client: "Client", record: Record, how: OnInterrupt, why: str, ours: Ours) -> None:
    """Leave a job that still runs, in the way that was asked for; one that isn't `ours` any more is left as it is."""
    job = record.job
    if job is None:
        record.message = f"{why} before there was a job"
        say(record.message)
        return
    name, namespace = (job["metadata"][key] for key in ("name", "namespace"))
    if how is OnInterrupt.KEEP:
        record.message = f"{why}: job {name} goes on; follow it with: mxjob logs -f {name} -n {namespace}"
        say(record.message)
        return
    record.message = f"{why}: deleting job {name}"
    say(record.message)
    try:
        is_going = await delete_if(client, job, ours)
    except NotOursError:
        record.message = f"{why}: job {name} is left, for it isn't this run's any more"
        say(record.message)
        return
    if is_going:
        say("waiting until it is gone; Ctrl-C leaves now")
        await until_gone(client, job)
    say(f"job {name} is gone")


async def part_as_step(client: "Client", record: Record, workflow: str, code: Exit, ours: Ours) -> Exit:
    """Delete the job where its workflow has no use for it any more, within a pod's grace period; else leave it.

    One that isn't `ours` any more is left as well.

    Returns the exit code: `code`, or that of a time-out where the step's time is over.
    """
    from mxnet_operator.kube.errors import KubeError  # noqa: PLC0415

    job = record.job
    if job is None:
        record.message = "interrupted before there was a job"
        say(record.message)
        return code
    why = ""
    try:
        async with asyncio.timeout(_GRACE):
            if over := await why_unwanted(client, job, workflow):
                why = f"workflow {workflow} {over}"
            elif await step_time_is_over(client, job["metadata"]["namespace"], os.environ):
                why, code = "the step's time is over", Exit.TIMEOUT
            if why:
                await delete_if(client, job, ours)
    except NotOursError:
        record.message = f"{why}: job {record.name} is left, for it isn't this run's any more"
    except (KubeError, TimeoutError) as error:
        record.message = f"{why or 'interrupted'}: job {record.name} is left, for the server doesn't help: {error}"
    else:
        left = f"interrupted, and workflow {workflow} goes on: job {record.name} is left for the next attempt"
        record.message = f"{why}: job {record.name} is deleted" if why else left
    say(record.message)
    return code
