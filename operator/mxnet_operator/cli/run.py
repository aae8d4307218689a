"""`mxjob run`: its options, and the manifest that it is given."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from mxnet_operator.cli.connection import ContextOption, KubeconfigOption, NamespaceOption, Target
from mxnet_operator.cli.errors import CommandError, Exit, leave
from mxnet_operator.cli.job_kinds import in_v1_words
from mxnet_operator.cli.jobs import replicas
from mxnet_operator.cli.manifests import read_documents
from mxnet_operator.cli.run_job import OnInterrupt, run_job
from mxnet_operator.cli.times import duration
from mxnet_operator.cli.validate import mistakes

EXAMPLES = """
[bold]Examples[/]

  mxjob run -f examples/digits/mxjob.yaml --report report.html

  mxjob run -f job.yaml --replica server-1 --on-interrupt keep

  generate-job | mxjob run -f - --no-logs --timeout 2h

[bold]Exit codes[/]  0 Succeeded · 1 Failed or deleted · 2 not valid · 3 the API can't be reached or refuses ·
124 --timeout passed · 130 Ctrl-C
"""


def run(
    *,
    file: Annotated[str, typer.Option("--filename", "-f", metavar="FILE", help="The manifest; - reads stdin.")],
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    on_interrupt: Annotated[
        OnInterrupt, typer.Option(help="What Ctrl-C (and --timeout) does with the job.")
    ] = OnInterrupt.DELETE,
    logs: Annotated[bool, typer.Option(help="Show the log of a replica on stdout.")] = True,
    replica: Annotated[
        str | None,
        typer.Option(metavar="TYPE-INDEX", help="Whose log; default worker-0, or tuner-0.", show_default=False),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write an HTML page about the job at its end.", show_default=False),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Give up after e.g. 90s, 10m or 2h.", show_default=False),
    ] = None,
) -> None:
    """Create a job, follow it to its end, and exit with 0 only if it Succeeded.

    The log of worker-0 goes to stdout, everything else to stderr. Ctrl-C deletes the job and waits until it is gone;
    a second Ctrl-C leaves at once.
    """
    job = _read_job(file)
    there = replicas(in_v1_words(job))
    if replica is not None and replica.lower() not in there:
        raise CommandError(f"the job has no replica {replica}", hint=f"it has {', '.join(there)}", code=Exit.USAGE)
    seconds = None if timeout is None else duration(timeout)
    target = Target(kubeconfig, context, namespace)
    if report is not None and not report.parent.is_dir():
        raise CommandError(f"--report {report}: there is no folder {report.parent}", code=Exit.USAGE)
    followed = run_job(
        job, target, on_interrupt=on_interrupt, logs=logs, replica=replica, report=report, timeout=seconds
    )
    leave(asyncio.run(followed))


def _read_job(file: str) -> dict[str, Any]:
    documents = read_documents(file)
    if len(documents) > 1:
        raise CommandError(
            f"{documents[0].source}: {len(documents)} documents, but one MXJob is run at a time",
            hint="kubectl apply -f takes several; follow one with: mxjob logs -f NAME",
            code=Exit.USAGE,
        )
    found = mistakes(documents[0])
    if found:
        raise CommandError("\n".join(found), code=Exit.USAGE)
    job: dict[str, Any] = documents[0].content
    return job
