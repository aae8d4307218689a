"""`mxjob delete`: delete jobs with their pods and Services."""

import asyncio
from typing import Annotated, Any

import typer
from rich.text import Text

from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.errors import CommandError, Exit, show_error
from mxnet_operator.cli.output.terminal import message_console, say
from mxnet_operator.cli.server.connection import JobNamesArgument, Target, connect
from mxnet_operator.cli.server.job_kinds import get_job, job_not_found
from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.client.jobs import until_gone

EXAMPLES = """
[bold]Examples[/]

  mxjob delete digits

  mxjob delete a b c --no-wait

[bold]Exit codes[/]  0 all deleted · 1 one was not found · 3 API server unreachable, or rejects it · 130 Ctrl-C
"""


@asks_server
async def delete(
    target: Target,
    *,
    jobs: JobNamesArgument,
    wait: Annotated[bool, typer.Option(help="Wait until the jobs and their pods are gone.")] = True,
) -> Exit:
    """Delete jobs with their pods and Services, and wait until all are gone. Ctrl-C ends only the waiting."""
    code = Exit.OK
    async with connect(target) as client:
        namespace = target.namespace or client.namespace
        terminating = {}

        async def gone(name: str, job: dict[str, Any]) -> None:
            await until_gone(client, job)
            say(f"job {name} is gone")

        for name in dict.fromkeys(jobs):
            try:
                job = await get_job(client, namespace, name)
                if not await JobClient(client).delete_job(JobRef.of(job)):
                    raise job_not_found(namespace, name)
                terminating[name] = job
            except CommandError as error:
                show_error(error)
                code = error.code
        if not wait:
            for name in terminating:
                say(f"job {name} is being deleted")
            return code
        with message_console().status(Text(f"waiting until {', '.join(terminating)} is gone" if terminating else "")):
            await asyncio.gather(*(gone(name, job) for name, job in terminating.items()))
    return code
