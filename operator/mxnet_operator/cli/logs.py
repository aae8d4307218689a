"""`mxjob logs`: what the replicas of a job wrote."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mxnet_operator.api.conditions import TERMINAL, job_state, terminal_message
from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.connection import JobNameArgument, Target, connect
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.follow_logs import LogFollower, has_started, log_lines, waiting_for
from mxnet_operator.cli.jobs import PODS, DeletedError, get_job, job_versions, main_replica, pod_name, pods_of, replicas
from mxnet_operator.cli.terminal import say, write_log

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
    raw: Annotated[
        bool, typer.Option("--raw", help="Let a terminal obey what is in the log: colours, but anything else, too.")
    ] = False,
) -> Exit:
    """Show the log of a job's replica, or with --replica all of every one, each line after its replica's name.

    A pipe or a file gets the log byte for byte. On a terminal control characters are shown, ESC as ^[.
    """
    async with connect(target) as client:
        job = await get_job(client, target.namespace or client.namespace, name)
        chosen = replicas(job) if replica == ALL else [_checked(job, replica)]
        writers = {each: _Writer(f"[{each}] " if len(chosen) > 1 else "", raw=raw) for each in chosen}
        if follow:
            await _follow(client, job, writers, tail)
        else:
            for each, write in writers.items():
                await _print(client, job, each, tail, write)
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


async def _print(client: "Client", job: dict[str, Any], replica: str, tail: int | None, write: "_Writer") -> None:
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
    async for line in log_lines(client, namespace, pod_of_replica, tail=tail):
        write(line)


async def _follow(client: "Client", job: dict[str, Any], writers: dict[str, "_Writer"], tail: int | None) -> None:
    """Show the logs until the job is terminal or gone, or one of them can't be shown any more."""
    followers = [LogFollower(client, job, replica, write, tail=tail) for replica, write in writers.items()]
    ended = asyncio.create_task(_until_ended(client, job))
    await asyncio.wait({ended, *(follower.start() for follower in followers)}, return_when=asyncio.FIRST_COMPLETED)
    if ended.done():
        await ended
    ended.cancel()
    await asyncio.gather(*(follower.finish() for follower in followers))


async def _until_ended(client: "Client", job: dict[str, Any]) -> None:
    with contextlib.suppress(DeletedError):
        async with contextlib.aclosing(job_versions(client, job)) as changes:
            async for current in changes:
                if job_state(current) in TERMINAL:
                    return


class _Writer:
    """Writes the pieces of one log; after `prefix` where logs are mixed, and then each whole line by itself."""

    def __init__(self, prefix: str, *, raw: bool) -> None:
        self._prefix = prefix
        self._raw = raw

    def __call__(self, piece: str) -> None:
        if self._prefix and not piece.endswith("\n"):
            piece += "\n"
        write_log(piece, self._prefix, raw=self._raw)
