"""`mxjob delete`: jobs, with their pods and Services."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.connection import JobNamesArgument, Target, connect
from mxnet_operator.cli.errors import CommandError, Exit, show_error
from mxnet_operator.cli.job_kinds import not_there
from mxnet_operator.cli.jobs import delete_job, get_job, until_gone
from mxnet_operator.cli.terminal import message_console, say

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

EXAMPLES = """
[bold]Examples[/]

  mxjob delete digits

  mxjob delete a b c --no-wait

[bold]Exit codes[/]  0 all are deleted · 1 one of them wasn't there · 3 the API can't be reached or refuses · 130 Ctrl-C
"""


@asks_server
async def delete(
    target: Target,
    *,
    jobs: JobNamesArgument,
    wait: Annotated[bool, typer.Option(help="Wait until they and their pods are gone.")] = True,
) -> Exit:
    """Delete jobs and everything that belongs to them, and wait until it is gone. Ctrl-C ends the waiting only."""
    code = Exit.OK
    async with connect(target) as client:
        namespace = target.namespace or client.namespace
        going = {}
        for name in dict.fromkeys(jobs):
            try:
                going[name] = await _ask(client, namespace, name)
            except CommandError as error:
                show_error(error)
                code = error.code
        if not wait:
            for name in going:
                say(f"job {name} is being deleted")
            return code
        with message_console().status(Text(f"waiting until {', '.join(going)} is gone" if going else "")):
            await asyncio.gather(*(_until_gone(client, name, job) for name, job in going.items()))
    return code


async def _ask(client: "Client", namespace: str, name: str) -> dict[str, Any]:
    """Have the server delete a job as it is now; returns it.

    Raises:
        CommandError: it isn't there.
    """
    job = await get_job(client, namespace, name)
    if not await delete_job(client, job):
        raise not_there(namespace, name)
    return job


async def _until_gone(client: "Client", name: str, job: dict[str, Any]) -> None:
    await until_gone(client, job)
    say(f"job {name} is gone")
