"""`mxjob logs`: what the replicas of a job wrote."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mxnet_operator.api.conditions import TERMINAL, job_state, terminal_message
from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.connection import JobNameArgument, Target, connect
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.follow_logs import LogFollower, has_started, log_lines, waiting_for
from mxnet_operator.cli.jobs import PODS, DeletedError, get_job, job_versions, main_replica, pod_name, pods_of, replicas
from mxnet_operator.cli.terminal import say, write_line

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

ALL = "all"

EXAMPLES = """
[bold]Examples[/]

  mxjob logs digits

  mxjob logs -f digits --replica server-1

  mxjob logs digits --replica all --tail 20
"""


@asks_server
async def logs(
    target: Target,
    *,
    name: JobNameArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
    replica: Annotated[
        str | None,
        typer.Option(metavar="TYPE-INDEX|all", help="Whose log; default worker-0, or tuner-0.", show_default=False),
    ] = None,
    tail: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="The last N lines only.", show_default=False)
    ] = None,
) -> Exit:
    """Show the log of a job's replica, or with --replica all of every one, each line after its replica's name."""
    async with connect(target) as client:
        job = await get_job(client, target.namespace or client.namespace, name)
        chosen = replicas(job) if replica == ALL else [_checked(job, replica)]
        if follow:
            await _follow(client, job, chosen, tail)
        else:
            for each in chosen:
                await _print(client, job, each, tail, prefix=len(chosen) > 1)
        return Exit.OK


def _checked(job: dict[str, Any], replica: str | None) -> str:
    if replica is None:
        return main_replica(job)
    if replica.lower() not in replicas(job):
        raise CommandError(
            f"job {job['metadata']['name']} has no replica {replica}",
            hint=f"it has {', '.join(replicas(job))}; or {ALL}",
            code=Exit.USAGE,
        )
    return replica.lower()


async def _print(client: "Client", job: dict[str, Any], replica: str, tail: int | None, *, prefix: bool) -> None:
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

    namespace, pod_of_replica = job["metadata"]["namespace"], pod_name(job["metadata"]["name"], replica)
    try:
        pod = await client.get(PODS.path(namespace, pod_of_replica))
    except ApiError as error:
        if error.code != 404:
            raise
        pod = None
    if pod is None or not pods_of(job, [pod]):  # a job of another kind may have the name
        state = job_state(job) or "new"
        say(f"{replica}: its pod is not there (job {state}); {terminal_message(job)}".rstrip("; "))
        return
    if not has_started(pod):
        say(f"{replica}: no log yet; {waiting_for(pod)}".rstrip("; "))
        return
    write = _writer(replica if prefix else "")
    async for line in log_lines(client, namespace, pod_of_replica, tail=tail):
        write(line)


async def _follow(client: "Client", job: dict[str, Any], chosen: list[str], tail: int | None) -> None:
    """Show the logs until the job is terminal or gone."""
    followers = []
    for each in chosen:
        write = _writer(each if len(chosen) > 1 else "")
        followers.append(LogFollower(client, job, each, write, tail=tail))
        followers[-1].start()
    with contextlib.suppress(DeletedError):
        async with contextlib.aclosing(job_versions(client, job)) as changes:
            async for current in changes:
                if job_state(current) in TERMINAL:
                    break
    await asyncio.gather(*(follower.finish() for follower in followers))


def _writer(prefix: str) -> Callable[[str], None]:
    return (lambda line: write_line(f"[{prefix}] {line}")) if prefix else write_line
