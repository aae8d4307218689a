"""`mxjob delete`: jobs, with their pods and Services."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from mxnet_operator.cli.connection import (
    ContextOption,
    JobNamesArgument,
    KubeconfigOption,
    NamespaceOption,
    Target,
    connect,
)
from mxnet_operator.cli.errors import CommandError, Exit, leave, show_error
from mxnet_operator.cli.interrupts import unless_interrupted
from mxnet_operator.cli.jobs import JOBS, get_job, not_there, until_gone
from mxnet_operator.cli.terminal import message_console, say

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

EXAMPLES = """
[bold]Examples[/]

  mxjob delete digits

  mxjob delete a b c --no-wait

[bold]Exit codes[/]  0 all are deleted · 1 one of them wasn't there · 3 the API can't be reached or refuses · 130 Ctrl-C
"""


def delete(
    *,
    jobs: JobNamesArgument,
    wait: Annotated[bool, typer.Option(help="Wait until they and their pods are gone.")] = True,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: NamespaceOption = None,
) -> None:
    """Delete jobs and everything that belongs to them, and wait until it is gone. Ctrl-C ends the waiting only."""
    leave(asyncio.run(unless_interrupted(_delete(Target(kubeconfig, context, namespace), jobs, wait))))


async def _delete(target: Target, jobs: list[str], wait: bool) -> Exit:
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
        with message_console().status(f"waiting until {', '.join(going)} is gone" if going else ""):
            await asyncio.gather(*(_until_gone(client, namespace, name, uid) for name, uid in going.items()))
    return code


async def _ask(client: "Client", namespace: str, name: str) -> str:
    """Have the server delete a job as it is now, not a later one of its name; returns its uid.

    Raises:
        CommandError: it isn't there.
    """
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

    uid: str = (await get_job(client, namespace, name))["metadata"]["uid"]
    try:
        options = {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}
        await client.delete(JOBS.path(namespace, name), options)
    except ApiError as error:
        if error.code not in {404, 409}:  # gone meanwhile, or another job of its name
            raise
        raise not_there(namespace, name) from error
    return uid


async def _until_gone(client: "Client", namespace: str, name: str, uid: str) -> None:
    await until_gone(client, namespace, name, uid)
    say(f"job {name} is gone")
