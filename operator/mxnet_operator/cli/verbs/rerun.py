"""`mxjob rerun`: run a job again, as a new job."""

import asyncio

from mxnet_operator.cli.command import with_options
from mxnet_operator.cli.errors import Exit, leave
from mxnet_operator.cli.output.terminal import go_on_unread
from mxnet_operator.cli.running.run_job import DetachOption, Options, run_job
from mxnet_operator.cli.running.run_outputs import Record
from mxnet_operator.cli.server.connection import JobNameArgument, Target, connect
from mxnet_operator.cli.server.job_kinds import find_job
from mxnet_operator.client.job_actions import again

EXAMPLES = """
[bold]Examples[/]

  mxjob rerun digits

  mxjob rerun digits --detach

[bold]Exit codes[/]  0 Succeeded, or started with --detach · 1 Failed, deleted, or no such job ·
3 API server unreachable, or rejects it · 130 Ctrl-C · 143 SIGTERM
"""


@with_options
def rerun(*, name: JobNameArgument, detach: DetachOption = False, target: Target) -> None:
    """Run a job again, as a new job with the same image, arguments and spec, and follow it as `mxjob run` does.

    The name of the new job is that of the old one with a random end. Labels and annotations are not copied, except
    Kueue's queue. A job that was suspended runs.
    """

    async def run() -> Exit:
        async with connect(target) as client:
            job = await find_job(client, target.namespace or client.namespace, name)
        return await run_job(again(job), target, Options(detach=detach), Record())

    go_on_unread()
    leave(asyncio.run(run()))
