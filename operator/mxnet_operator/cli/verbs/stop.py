"""`mxjob stop`: stop jobs and keep what they have."""

from rich.text import Text

from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.output.terminal import message_console, say
from mxnet_operator.cli.server.connection import JobNamesArgument, Target, connect
from mxnet_operator.cli.server.job_kinds import Job, for_each
from mxnet_operator.client.job_actions import request_stop, until_stopped

EXAMPLES = """
[bold]Examples[/]

  mxjob stop digits

  mxjob stop a b c

[bold]Exit codes[/]  0 all have ended · 1 one was not found · 3 API server unreachable, or rejects it · 130 Ctrl-C
"""


@asks_server
async def stop(target: Target, *, jobs: JobNamesArgument) -> Exit:
    """Stop jobs, and wait until their processes have ended. Ctrl-C ends only the waiting.

    A stopped job is Failed. Its status, logs and files stay until `mxjob delete`; `mxjob rerun` runs it again.
    Only cleanPodPolicy All or Running in its manifest deletes its pods, with their logs.
    """
    async with connect(target) as client:
        with message_console().status("stopping") as shown:

            async def stopped(name: str, job: Job) -> None:
                if (state := job_state(job)) in TERMINAL:
                    say(f"job {name} has already ended: {state}")
                    return
                await request_stop(client, job)
                state = await until_stopped(
                    client, job, lambda pods: shown.update(Text(f"waiting until {pods} has ended"))
                )
                say(f"job {name} has ended: {state}" if state else f"job {name} is gone")

            return await for_each(client, target.namespace or client.namespace, jobs, stopped)
