"""`mxjob delete`: delete jobs with their pods and Services."""

import asyncio

from rich.text import Text

from mxnet_operator.cli.command import asks_server, option
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.output.terminal import message_console, say
from mxnet_operator.cli.server.connection import JobNamesArgument, Target, connect
from mxnet_operator.cli.server.job_kinds import Job, for_each, job_not_found
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
    wait: bool = option(default=True, help="Wait until the jobs and their pods are gone.", show_default=True),
) -> Exit:
    """Delete jobs with their pods and Services, and wait until all are gone. Ctrl-C ends only the waiting."""
    async with connect(target) as client:
        namespace = target.namespace or client.namespace
        terminating: dict[str, Job] = {}

        async def deleted(name: str, job: Job) -> None:
            if not await JobClient(client).delete_job(JobRef.of(job)):
                raise job_not_found(namespace, name)
            if wait:
                terminating[name] = job
            else:
                say(f"job {name} is being deleted")

        async def gone(name: str, job: Job) -> None:
            await until_gone(client, job)
            say(f"job {name} is gone")

        with message_console().status(Text(f"deleting {', '.join(dict.fromkeys(jobs))}")):
            code = await for_each(client, namespace, jobs, deleted)
            await asyncio.gather(*(gone(name, job) for name, job in terminating.items()))
    return code
