"""`mxjob run`: its options, and the manifest that it is given."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from mxnet_operator.cli.connection import ContextOption, KubeconfigOption, NamespaceOption, Target
from mxnet_operator.cli.create_job import check_adoptable
from mxnet_operator.cli.errors import CommandError, Exit, leave, show_error
from mxnet_operator.cli.job_kinds import in_v1_words
from mxnet_operator.cli.jobs import replicas
from mxnet_operator.cli.manifests import read_documents
from mxnet_operator.cli.part_with_job import OnInterrupt
from mxnet_operator.cli.run_job import Options, run_job
from mxnet_operator.cli.run_outputs import Record
from mxnet_operator.cli.terminal import go_on_unread
from mxnet_operator.cli.times import duration
from mxnet_operator.cli.validate import AllowUnknownOption, mistakes

EXAMPLES = """
[bold]Examples[/]

  mxjob run -f examples/digits/mxjob.yaml --report report.html

  mxjob run -f job.yaml --replica server-1 --on-interrupt keep

  generate-job | mxjob run -f - --no-logs --timeout 2h

  mxjob run -f job.yaml --adopt example.com/run --on-interrupt keep --output-dir out

[bold]Exit codes[/]  0 Succeeded · 1 Failed or deleted · 2 not valid · 3 the API can't be reached or refuses ·
124 --timeout passed · 130 Ctrl-C · 143 SIGTERM

[bold]With --adopt[/]  1 Failed · 3 the API refuses, or a job of the name is another run's · 4 deleted by somebody ·
75 the API can't be reached: the same command finds the job again, as it does after 130 and 143 if the job was kept
"""


def run(
    *,
    file: Annotated[str, typer.Option("--filename", "-f", metavar="FILE", help="The manifest; - reads stdin.")],
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    on_interrupt: Annotated[
        OnInterrupt | None,
        typer.Option(help="What Ctrl-C, SIGTERM and --timeout do with the job; default delete.", show_default=False),
    ] = None,
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
    adopt: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="If a job of the name is there already, follow it, provided that it has the manifest's value of this"
            " label (and its owners).",
            show_default=False,
        ),
    ] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the files job, state, message and result there, however the job ends.",
            show_default=False,
        ),
    ] = None,
    message_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write how it ended there too, 4 kB at most: in a pod /dev/termination-log.",
            show_default=False,
        ),
    ] = None,
    workflow: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="As a step of this Argo Workflow: SIGTERM deletes the job only if the workflow is being stopped,"
            " terminated or deleted, or the step's time is over.",
            show_default=False,
        ),
    ] = None,
    patience: Annotated[
        str, typer.Option(metavar="DURATION", help="How long to wait for an API that can't be reached.")
    ] = "1m",
    allow_unknown_fields: AllowUnknownOption = False,
) -> None:
    """Create a job, follow it to its end, and exit with 0 only if it Succeeded.

    The log of worker-0 goes to stdout, everything else to stderr. Ctrl-C deletes the job and waits until it is gone;
    a second Ctrl-C leaves at once. What is killed and started again finds its job with --adopt. A pipe that is closed,
    as by head, ends the showing, not the job.
    """
    if workflow is not None and on_interrupt is not None:
        raise CommandError(
            "--workflow says what becomes of the job, so --on-interrupt can't: give one of them", code=Exit.USAGE
        )
    go_on_unread()  # a job is more than its log
    record = Record(folder=output_dir, message_file=message_file)
    record.begin()
    try:
        job = _read_job(file, allow_unknown=allow_unknown_fields)
        record.name = job["metadata"].get("name") or ""
        options = Options(
            on_interrupt=on_interrupt or OnInterrupt.DELETE,
            workflow=workflow,
            adopt=adopt,
            logs=logs,
            replica=replica,
            report=report,
            timeout=None if timeout is None else duration(timeout),
            patience=duration(patience),
        )
        _check(job, options)
        code = asyncio.run(run_job(job, Target(kubeconfig, context, namespace), options, record))
    except CommandError as error:
        record.message = error.message
        try:
            record.write(error.code)
        except CommandError as unwritten:
            show_error(unwritten)
        raise
    record.write(Exit.FAILED if adopt is None else Exit.TRY_AGAIN)
    leave(code)


def _check(job: dict[str, Any], options: Options) -> None:
    """Refuse options that don't go with the job, or with this machine, before anything is created."""
    if options.adopt is not None:
        check_adoptable(job, options.adopt)
    there = replicas(in_v1_words(job))
    if options.replica is not None and options.replica.lower() not in there:
        raise CommandError(
            f"the job has no replica {options.replica}", hint=f"it has {', '.join(there)}", code=Exit.USAGE
        )
    if options.report is not None:
        from mxnet_operator.cli.run_report import check_report  # noqa: PLC0415 - draws, which takes a while to import

        check_report(options.report)


def _read_job(file: str, *, allow_unknown: bool) -> dict[str, Any]:
    documents = read_documents(file)
    if len(documents) > 1:
        raise CommandError(
            f"{documents[0].source}: {len(documents)} documents, but one MXJob is run at a time",
            hint="kubectl apply -f takes several; follow one with: mxjob logs -f NAME",
            code=Exit.USAGE,
        )
    found = mistakes(documents[0], allow_unknown=allow_unknown)
    if found:
        raise CommandError("\n".join(found), code=Exit.USAGE)
    job: dict[str, Any] = documents[0].content
    return job
