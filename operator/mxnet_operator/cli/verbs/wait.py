"""`mxjob wait`: wait until a job is Running, has Succeeded or has finished."""

import asyncio
import contextlib
from enum import StrEnum
from typing import Any

from mxnet_operator.api.conditions import RUNNING, SUCCEEDED, TERMINAL, job_state, terminal_message
from mxnet_operator.cli.command import asks_server, option
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.output.progress import Progress, progress
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.cli.output.times import duration
from mxnet_operator.cli.running.follow_replicas import gone_text, replicas_shown
from mxnet_operator.cli.server.connection import Client, JobNameArgument, Target, connect
from mxnet_operator.cli.server.job_kinds import get_job
from mxnet_operator.client.jobs import DeletedError, job_versions
from mxnet_operator.client.outage import Outage
from mxnet_operator.readers.durations import short

EXAMPLES = """
[bold]Examples[/]

  mxjob wait digits

  mxjob wait digits --for Running --timeout 5m

[bold]Exit codes[/]  0 the job reached that state · 1 it no longer can: Failed or deleted · 3 API server unreachable, or
rejects it · 124 --timeout passed · 130 Ctrl-C
"""


class Awaited(StrEnum):
    SUCCEEDED = "Succeeded"
    RUNNING = "Running"
    FINISHED = "finished"


@asks_server
async def wait(
    target: Target,
    *,
    name: JobNameArgument,
    awaited: Awaited = option(
        "--for",
        default=Awaited.SUCCEEDED,
        metavar="Succeeded|Running|finished",
        help="State to wait for; Running: has started; finished: Succeeded or Failed.",
        case_sensitive=False,
        show_default=True,
    ),
    timeout: float | None = option(  # noqa: ASYNC109 - the command's option
        parser=duration, metavar="DURATION", help="Give up after e.g. 90s, 10m or 2h."
    ),
) -> Exit:
    """Wait until a job has Succeeded, is Running or has finished, with its progress on stderr."""
    try:
        async with asyncio.timeout(timeout), connect(target) as client:
            job = await get_job(client, target.namespace or client.namespace, name)
            with progress(show_log=False) as shown:
                outage = Outage(say=shown.note)
                try:
                    async with replicas_shown(client, job, shown, outage):
                        job = await _until(client, job, awaited, shown, outage)
                except DeletedError:
                    say(gone_text(job, outage, f"job {name} was deleted before it was {awaited}"))
                    return Exit.FAILED
    except TimeoutError:
        say(f"job {name}: not {awaited} after {short(timeout or 0)}")
        return Exit.TIMEOUT
    state = job_state(job)
    if message := terminal_message(job):
        say(message, style="green" if state == SUCCEEDED else "red")
    return outcome(state, awaited) or Exit.OK


async def _until(
    client: Client, job: dict[str, Any], awaited: Awaited, shown: Progress, outage: Outage
) -> dict[str, Any]:
    """Wait until the outcome is clear; returns the job."""
    async with contextlib.aclosing(job_versions(client, job, outage=outage)) as changes:
        async for current in changes:
            shown.job(current)
            state = job_state(current)
            if "deletionTimestamp" in current["metadata"] and state not in TERMINAL:
                break  # whatever it is now, it won't be for long
            if outcome(state, awaited) is not None:
                return current
    raise DeletedError(job["metadata"]["name"])


def outcome(state: str, awaited: Awaited) -> Exit | None:
    """Return the exit code for a job state, None while undecided; a job that has Succeeded counts as Running before."""
    if state == SUCCEEDED or (state == RUNNING and awaited == RUNNING):
        return Exit.OK
    if state in TERMINAL:
        return Exit.OK if awaited == "finished" else Exit.FAILED
    return None
