"""`mxjob run`: its options, and the job that they and the manifest describe."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from mxnet_operator.api.conditions import terminal_message
from mxnet_operator.api.manifest_text import dump_all
from mxnet_operator.cli.command import option, with_options
from mxnet_operator.cli.errors import CommandError, Exit, UsageError, extra_needed, leave, show_error, unwritten_output
from mxnet_operator.cli.output.terminal import go_on_unread, say, write_line
from mxnet_operator.cli.running.cluster_files import with_output_folders
from mxnet_operator.cli.running.create_job import check_adoptable
from mxnet_operator.cli.running.failure_hints import build_hint, failure_hint, refuse_what_must_fail, trains_alone
from mxnet_operator.cli.running.images import EnvironmentOptions, add_folder
from mxnet_operator.cli.running.local_files import check_output
from mxnet_operator.cli.running.run_job import Options, run_job
from mxnet_operator.cli.running.run_outputs import Record, ReportError, check_report
from mxnet_operator.cli.running.script import Script, needs_image
from mxnet_operator.cli.server.connection import Target, credentials_of, uses_local
from mxnet_operator.cli.verbs.job_options import JobOptions, lacks_model_prefix
from mxnet_operator.cli.verbs.validate import AllowUnknownOption
from mxnet_operator.client.jobs import in_v1_words, replicas
from mxnet_operator.kube.resources import is_path_segment

EXAMPLES = """
[bold]Examples[/]

  mxjob run train.py --workers 2 -- --epochs 5

  mxjob run train.py --pip pandas --output out

  mxjob run train.py --as-of 2019-12

  mxjob run train.py --detach

  mxjob run -f examples/digits/mxjob.yaml --report report.html

  mxjob run train.py --image registry.example.com/digits:1.0 --workers 2 -- --kv-store dist_sync

  mxjob run -f job.yaml --replica server-1 --on-interrupt keep

  generate-job | mxjob run -f - --no-logs --timeout 2h

  mxjob run -f job.yaml --adopt example.com/run --on-interrupt keep --output-dir out

[bold]Exit codes[/]  0 Succeeded, or created with --detach · 1 Failed or deleted · 2 not valid ·
3 API server unreachable, or rejects it · 124 --timeout passed · 130 Ctrl-C · 143 SIGTERM

[bold]With --adopt[/]  1 Failed · 3 API server rejects it, or the job is another run's · 4 deleted by somebody ·
75 API server unreachable: the same command finds the job again, as after 130 and 143 if the job was kept
"""


@with_options
def run(
    *,
    file: str | None = option("--filename", "-f", metavar="FILE", help="Manifest of the job; - reads stdin."),
    described: JobOptions,
    pip: list[str] | None = option(
        metavar="PACKAGE", help="Package to add to the image of the script's folder, such as pandas; repeatable."
    ),
    environment: EnvironmentOptions,
    dry_run: bool = option("--dry-run", default=False, help="Print the manifest on stdout; create no job."),
    target: Target,
    options: Options,
    allow_unknown_fields: AllowUnknownOption = False,
) -> None:
    """Create a job, follow it until it ends, and exit with 0 only if it Succeeded.

    SCRIPT runs with `python`; its arguments follow `--`. Without --image, the job gets an image of the current folder
    (of the script's, if it lies elsewhere) and runs on the local cluster, which is started if no cluster is chosen.
    The image has the packages of the folder's requirements.txt, and no files that its .dockerignore names.
    A cluster is chosen by --kubeconfig, --context, $KUBECONFIG or ~/.kube/config.

    With -f the job is that of a manifest, and options are merged over it.

    The log of worker-0 goes to stdout, everything else to stderr. Ctrl-C on a terminal asks whether to keep or stop the
    job. In a script it deletes the job and waits until it is gone, and a second one exits at once. With --adopt, a
    command that was killed and is started again finds its job. A closed pipe, as by head, ends the output, not the job.
    """
    if options.workflow is not None and options.on_interrupt is not None:
        raise UsageError(
            "--workflow and --on-interrupt can't be combined: each says what an interruption does with the job"
        )
    ends = {name: getattr(options, name) for name in ("report", "output", "timeout", "workflow")}
    if options.detach and (needs_end := [name for name, value in ends.items() if value is not None]):
        raise UsageError(
            f"--detach returns before the job ends, and --{needs_end[0]} needs its end",
            hint="follow the job later: mxjob wait JOB; mxjob cp JOB .",
        )
    output_in_claim = options.output is not None and not uses_local(target)
    if (pip or environment.given()) and (described.image is not None or file is not None):
        what = "--pip adds packages to" if pip else f"{environment.given()} chooses"
        raise UsageError(
            f"{what} the image of a script's folder: it can't be combined with --image or -f",
            hint="install them in the image" if pip else f"mxjob local image add NAME FOLDER {environment.given()}",
        )
    is_resumed = described.resume or described.checkpoint is not None or described.resume_args is not None
    if is_resumed and file is None and not described.mounts and not described.volumes:
        raise UsageError(
            "--resume: the checkpoints have to be in a folder that outlives a pod",
            hint="--volume CLAIM:/models or, on the local cluster, --mount ./models:/models, and --model-prefix in it",
        )
    if is_resumed and described.checkpoint is None and lacks_model_prefix(described.command or []):
        raise UsageError(
            "--resume: the script's arguments have no --model-prefix, which fit.py saves its checkpoints under",
            hint="name what the script saves, and how it loads that: --checkpoint '/models/net-{epoch}.params'"
            " --resume-args '--resume {checkpoint} --start-epoch {epoch}'",
        )
    if described.mounts and not uses_local(target):
        raise UsageError(
            "--mount: only the local cluster mounts folders of this machine, and another cluster is chosen",
            hint="copy the files into a PersistentVolumeClaim there, and mount it: --volume CLAIM:/PATH",
        )
    if dry_run:
        script = _script_of(described, file)
        described = _with_folder(described, script, target, pip or [], environment, build=False)
        job, objects = described.job(file, allow_unknown=allow_unknown_fields)
        write_line(dump_all([*objects, with_output_folders(job) if output_in_claim else job]).rstrip("\n"))
        return
    if options.output is not None:
        check_output(options.output)
    go_on_unread()  # a job is more than its log
    record = Record(folder=options.output_dir, message_file=options.message_file)
    record.write(Exit.USAGE)  # the files exist however the run ends
    with _recorded(record, Exit.FAILED if options.adopt is None else Exit.TRY_AGAIN):
        script = _script_of(described, file)
        described = _with_folder(described, script, target, pip or [], environment, build=True)
        job, objects = described.job(file, allow_unknown=allow_unknown_fields)
        if output_in_claim:
            job = with_output_folders(job)
        record.name = job["metadata"].get("name") or ""
        _check(job, options)
        if script is not None and (warning := trains_alone(script, job)):
            say(warning, style="yellow")
        if options.adopt is None and options.workflow is None and uses_local(target):
            with extra_needed("local"):
                from mxnet_operator.cli.daemons.local_cluster import ensure_running  # noqa: PLC0415
            ensure_running()
        code = asyncio.run(run_job(job, target, options, record, objects))
    if code == Exit.FAILED:
        asked = "" if script is None else _other_environment(script, pip or [])
        if hint := asked or failure_hint(record.message, job, script):
            say(hint)
    leave(code)


def _script_of(described: JobOptions, file: str | None) -> Script | None:
    """Return the script that needs an image of its folder."""
    return Script.of(described.command) if described.command and file is None and described.image is None else None


def _with_folder(
    described: JobOptions,
    script: Script | None,
    target: Target,
    packages: list[str],
    environment: EnvironmentOptions,
    *,
    build: bool,
) -> JobOptions:
    """Give a script without an image one of its folder; `build` it, unless nothing is to run."""
    if script is None:
        return described
    dataclasses.replace(described, image="checked").description()  # before anything is built
    is_local, gpus = uses_local(target), bool(described.gpus_per_worker)
    if target.context is not None or not is_local:
        credentials_of(target)  # a context that doesn't exist is the mistake to name
    if build:
        with extra_needed("local"):
            refuse_what_must_fail(script, needs_driver=is_local and gpus)
        for warning in filter(None, (*script.warnings, _other_environment(script, packages))):
            say(warning, style="yellow")
    if not is_local:
        raise needs_image(script, packages, environment, gpus=gpus, write=build)
    try:
        image = add_folder(script.folder, packages, environment, gpus=gpus, build=build)
    except CommandError as error:
        error.hint = error.hint or build_hint(error.message, script)
        raise
    return dataclasses.replace(described, image=image, command=list(script.command))


def _other_environment(script: Script, packages: Sequence[str]) -> str:
    with extra_needed("local"):
        from mxnet_operator.cli.running.other_environment import other_environment  # noqa: PLC0415
    return other_environment(script, packages)


@contextlib.contextmanager
def _recorded(record: Record, unwritten: Exit) -> Iterator[None]:
    """Write the record however the block ends; `unwritten` is the exit code where output can't be written."""
    try:
        yield
    except BaseException as error:
        record.message = _last_words(record, error)
        try:
            record.write(unwritten)
        except CommandError as second:
            show_error(second)
        if (full := unwritten_output(error, unwritten)) is not None:
            raise full from error
        raise
    record.write(unwritten)


def _last_words(record: Record, error: BaseException) -> str:
    """Return the message of a run that an error ends: of a job that has ended the job's own, if nothing else failed."""
    if isinstance(error, CommandError) and not isinstance(error, ReportError):
        return error.message
    return record.message or terminal_message(record.job or {}) or f"mxjob failed: {type(error).__name__}: {error}"


def _check(job: dict[str, Any], options: Options) -> None:
    """Reject options that don't fit the job or this machine, before anything is created."""
    if options.adopt is not None:
        check_adoptable(job, options.adopt)
    if options.workflow is not None and not is_path_segment(options.workflow):
        raise UsageError(f"--workflow {options.workflow}: not the name of a workflow")
    there = replicas(in_v1_words(job))
    if options.replica is not None and options.replica.lower() not in there:
        raise UsageError(f"the job has no replica {options.replica}", hint=f"it has {', '.join(there)}")
    if options.report is not None:
        check_report(options.report)
