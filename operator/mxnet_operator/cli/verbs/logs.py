"""`mxjob logs`: the logs of a job's replicas."""

import asyncio
import contextlib
from typing import Any

import typer

from mxnet_operator.api.conditions import job_state, terminal_message
from mxnet_operator.cli.command import asks_server, option
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.output.terminal import say, write_log
from mxnet_operator.cli.running.follow_replicas import rest_of_log
from mxnet_operator.cli.server.connection import Client, JobNameArgument, Target, completed, connect
from mxnet_operator.cli.server.job_kinds import get_job, replica_of
from mxnet_operator.client.jobs import DeletedError, pod_name, pods_of, replicas, until_finished
from mxnet_operator.client.outage import Outage
from mxnet_operator.client.pod_log import LogFollower, log_lines
from mxnet_operator.kube.resources import PODS
from mxnet_operator.readers.log_figures import rank_in
from mxnet_operator.readers.pods import has_log, why_not_started

ALL = "all"

EXAMPLES = """
[bold]Examples[/]

  mxjob logs digits

  mxjob logs -f digits --replica server-1

  mxjob logs digits --replica all --tail 20
"""


def _complete_replica(context: typer.Context, incomplete: str) -> list[str]:
    async def offered(client: Client, namespace: str) -> list[str]:
        name = context.params.get("name") or context.args[0]  # click parses no further than an option without a value
        return [*replicas(await get_job(client, namespace, name)), ALL]

    return completed(context, incomplete, offered)


@asks_server
async def logs(
    target: Target,
    *,
    name: JobNameArgument,
    follow: bool = option("--follow", "-f", default=False, help="Follow the log until the job ends."),
    replica: str | None = option(
        metavar="TYPE-INDEX|all",
        help="Replica whose log is shown; default: worker-0, or tuner-0.",
        autocompletion=_complete_replica,
    ),
    tail: int | None = option(min=0, metavar="N", help="Show only the last N lines."),
    raw: bool = option(
        "--raw",
        default=False,
        help="Pass the log's control characters to the terminal: colours, but anything else too.",
    ),
) -> Exit:
    """Show the log of a replica of a job, or with --replica all of every replica, each line with its replica.

    A pipe or a file gets the log byte for byte. On a terminal control characters are escaped, ESC as ^[.
    """
    async with connect(target) as client:
        job = await get_job(client, target.namespace or client.namespace, name)
        chosen = replicas(job) if replica == ALL else [replica_of(job, replica, f"; or {ALL}")]
        writers = {each: _Writer(f"[{each}] " if len(chosen) > 1 else "", raw=raw) for each in chosen}
        if follow:
            await _follow(client, job, writers, tail)
        else:
            for each, write in writers.items():
                await _print(client, job, each, tail, write)
        return Exit.OK


async def _print(client: Client, job: dict[str, Any], replica: str, tail: int | None, write: "_Writer") -> None:
    namespace, pod_of_replica = job["metadata"]["namespace"], pod_name(job["metadata"]["name"], replica)
    pod = await client.find(PODS.path(namespace, pod_of_replica))
    if pod is None or not pods_of(job, [pod]):  # a job of another kind may have the name
        state = job_state(job) or "new"
        say(f"{replica}: no pod (job {state}); {terminal_message(job)}".rstrip("; "))
        return
    if not has_log(pod):
        say(f"{replica}: no log yet; {why_not_started(pod)}".rstrip("; "))
        return
    async for line in log_lines(client, namespace, pod_of_replica, tail=tail):
        write(line)


async def _follow(client: Client, job: dict[str, Any], writers: dict[str, "_Writer"], tail: int | None) -> None:
    """Show the logs until the job is finished or deleted, or one of them can't be shown any more."""
    outage = Outage(say=say)
    followers = [
        LogFollower(client, job, replica, write, tail=tail, outage=outage) for replica, write in writers.items()
    ]
    ended = asyncio.create_task(until_finished(client, job, outage=outage))
    await asyncio.wait({ended, *(follower.start() for follower in followers)}, return_when=asyncio.FIRST_COMPLETED)
    if ended.done():
        with contextlib.suppress(DeletedError):
            await ended
    ended.cancel()
    whole = await asyncio.gather(*(follower.finish() for follower in followers))
    for replica in (each for each, is_whole in zip(writers, whole, strict=True) if not is_whole):
        say(rest_of_log(job, replica))


class _Writer:
    """Writer of one log; with a `prefix`, for mixed logs, it writes whole lines, and the rank once the log told it."""

    def __init__(self, prefix: str, *, raw: bool) -> None:
        self._prefix = prefix
        self._raw = raw
        self._rank: int | None = None

    def __call__(self, piece: str) -> None:
        if self._prefix and self._rank is None and (rank := rank_in(piece)) is not None:
            self._prefix, self._rank = self._prefix.replace("]", f" (rank {rank})]"), rank
        if self._prefix and not piece.endswith("\n"):
            piece += "\n"
        write_log(piece, self._prefix, raw=self._raw)
