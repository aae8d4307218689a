"""`mxjob run` after its options are checked: create or adopt a job and follow it to its end or an interruption."""

import asyncio
import contextlib
import functools
import os
import shlex
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mxnet_operator.api import names
from mxnet_operator.api.conditions import SUCCEEDED, job_state, terminal_message
from mxnet_operator.api.job_url import job_page
from mxnet_operator.cli.command import option
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.interrupts import beside, first_signal
from mxnet_operator.cli.output.progress import Progress, ProgressFile, progress
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.cli.output.times import duration
from mxnet_operator.cli.running.cluster_files import bring_home_from_claim
from mxnet_operator.cli.running.create_job import create_job, create_or_adopt, find_job_of, is_own
from mxnet_operator.cli.running.follow_replicas import gone_text, replicas_shown, rest_of_log, show_comparison
from mxnet_operator.cli.running.interrupted_job import OnInterrupt, choice, finish_interrupted, part_as_step
from mxnet_operator.cli.running.local_files import bring_home, claim_folder, files_written, is_local, local_job_files
from mxnet_operator.cli.running.run_outputs import Record, ReportError, write_report
from mxnet_operator.cli.server.connection import Client, Target, connect, until_cluster_stops
from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.client.job_events import job_events
from mxnet_operator.client.jobs import (
    DeletedError,
    collections,
    images_of,
    in_v1_words,
    main_replica,
    pod_selector,
    until_finished,
)
from mxnet_operator.client.outage import RETRY_SECONDS, Outage
from mxnet_operator.client.pod_log import LogFollower
from mxnet_operator.client.training import epochs_wanted
from mxnet_operator.client.whole_result import with_whole_result
from mxnet_operator.dashboard.job_run import run_of
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, KubeError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.local.kubelet.pod_files import Written
from mxnet_operator.readers.durations import short
from mxnet_operator.readers.pods import ENDED
from mxnet_operator.readers.volumes import CLAIM, NOTHING_KEPT, kept_volumes

_WHILE_IT_RUNS: Final = "While the job runs"
_following = functools.partial(option, panel=_WHILE_IT_RUNS)
_for_programs = functools.partial(option, panel="For programs that run jobs")
_HOW_TO_GO_ON: Final = {
    "logs -f {}": "follows its log",
    "describe {}": "shows its state",
    "cp {}:PATH .": "copies what it wrote",
    "stop {}": "stops it, and keeps its logs and files",
    "delete {}": "deletes it with all that",
}
"""Commands for a job that is left running, each with what it does."""
_REST_OF_PODS: Final = 10.0
"""Seconds to wait, for the report, for replicas that end after their job."""
_FIRST_REQUEST: Final = 5.0
"""Seconds that an interrupted `--adopt` run waits for its request to create the job."""


DetachOption = Annotated[
    bool,
    typer.Option(
        "--detach",
        "-d",
        help="Create the job, print how to follow and stop it, and exit.",
        rich_help_panel=_WHILE_IT_RUNS,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options:
    on_interrupt: OnInterrupt | None = _following(
        help="What Ctrl-C, SIGTERM and --timeout do with the job; default: delete, but Ctrl-C on a terminal asks."
    )
    detach: DetachOption = False
    logs: bool = _following(default=True, help="Show the log of a replica on stdout.", show_default=True)
    replica: str | None = _following(
        metavar="TYPE-INDEX", help="Replica whose log is shown; default: worker-0, or tuner-0."
    )
    report: Path | None = option(metavar="FILE", help="Write an HTML report when the job has ended.")
    output: Path | None = option(
        metavar="FOLDER",
        help="Copy what the replicas wrote into this new or empty folder when the job has ended, as "
        "FOLDER/worker-0/...: on the local cluster new files of their working directories, on another those of "
        "$MXJOB_OUTPUT_DIR, which is then in the claim of --volume.",
    )
    timeout: float | None = _following(parser=duration, metavar="DURATION", help="Give up after e.g. 90s, 10m or 2h.")
    adopt: str | None = _for_programs(
        metavar="LABEL",
        help="If a job of this name exists, follow it, provided that its value of this label (and its owners) are"
        " the manifest's.",
    )
    output_dir: Path | None = _for_programs(
        metavar="DIR", help="Folder for the files job, state, message, result and files, written however the job ends."
    )
    message_file: Path | None = _for_programs(
        metavar="FILE", help="File for the message too, 4 kB at most; in a pod: /dev/termination-log."
    )
    workflow: str | None = _for_programs(
        metavar="NAME",
        help="Run as a step of this Argo Workflow: SIGTERM deletes the job only if the workflow is being stopped,"
        " terminated or deleted, or the step's deadline has passed.",
    )
    retry_timeout: float = _for_programs(
        default=RETRY_SECONDS,
        parser=duration,
        metavar="DURATION",
        help="How long to wait while the API server can't be reached; default: 1m.",
    )


async def run_job(
    manifest: dict[str, Any], target: Target, options: Options, record: Record, objects: Sequence[dict[str, Any]] = ()
) -> Exit:
    """Create or adopt the job and show it until it ends; on an interruption, delete or keep it.

    `record` is updated with each version of the job. `objects` are those beside it, such as a ConfigMap.

    Raises:
        CommandError: it can't be created, or an outage of the API server lasts too long.
    """

    def ours(job: dict[str, Any]) -> bool:
        return options.adopt is None or is_own(job, manifest, options.adopt)

    async def begin(client: Client) -> None:
        label, retry = options.adopt, options.retry_timeout
        if label is None:
            record.seen(await create_job(client, manifest, target, objects))
        else:
            record.seen(await create_or_adopt(client, manifest, target, label, objects, retry_timeout=retry))

    with first_signal() as interrupted:
        async with connect(target) as client, _exits_told_apart(options):
            beginning = asyncio.create_task(begin(client))
            following = asyncio.create_task(_follow_begun(client, beginning, target, options, record))
            await asyncio.wait({following, interrupted}, timeout=options.timeout, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                return await following
            await asyncio.wait({beginning}, timeout=None if options.adopt is None else _FIRST_REQUEST)
            for task in (following, beginning):
                task.cancel()
            await asyncio.gather(following, beginning, return_exceptions=True)
            if record.job is None and options.adopt is not None:
                found = await find_job_of(client, manifest, target)
                if found is not None and ours(found):
                    record.seen(found)
            code = interrupted.result() if interrupted.done() else Exit.TIMEOUT
            if options.workflow is not None and interrupted.done():
                return await part_as_step(client, record, options.workflow, code, ours)
            how = options.on_interrupt or OnInterrupt.DELETE
            if options.on_interrupt is None and options.adopt is None and record.job is not None:
                how = await choice(record.name, code)
            if options.output is not None and how != "keep":
                await _bring_before_deletion(client, record, options.output)
            late = f"not finished after {short(options.timeout or 0)}"
            await finish_interrupted(client, record, how, late if code is Exit.TIMEOUT else "interrupted", ours)
            return code


@contextlib.asynccontextmanager
async def _exits_told_apart(options: Options) -> AsyncIterator[None]:
    """Give outages of the API server their own exit code with `adopt`: the same command finds the job again."""
    try:
        yield
    except (ApiUnavailable, ApiError) as error:
        if options.adopt is None or (isinstance(error, ApiError) and not error.is_transient):
            raise
        raise CommandError(
            f"the API server can't be reached, or fails: {error}",
            hint="run the same command again: it finds the job and follows it",
            code=Exit.TRY_AGAIN,
        ) from error


async def _follow_begun(
    client: Client, beginning: "asyncio.Task[None]", target: Target, options: Options, record: Record
) -> Exit:
    await asyncio.shield(beginning)
    if not options.detach:
        return await _follow_while_cluster_runs(client, options, record)
    given = {"--kubeconfig": target.kubeconfig, "--context": target.context, "-n": target.namespace}
    where = "".join(f" {flag} {shlex.quote(value)}" for flag, value in given.items() if value)
    for verb, what in _HOW_TO_GO_ON.items():
        say(f"  {f'mxjob {verb.format(record.name)}{where}':<40}  {what}")
    return Exit.OK


async def _follow_while_cluster_runs(client: Client, options: Options, record: Record) -> Exit:
    """Follow the job; end at once where it is the local cluster's, and that is stopped."""
    async with (
        beside(until_cluster_stops(client.server)) as (stopped,),
        beside(_follow(client, options, record)) as (following,),
    ):
        await asyncio.wait({following, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            return await following
    record.message = f"the local cluster was stopped, and job {record.name} with it"
    say(f"{record.message}; its files stay for a week: mxjob cp {record.name}:PATH .", style="red")
    return Exit.FAILED if options.adopt is None else Exit.DELETED


async def _follow(client: Client, options: Options, record: Record) -> Exit:
    """Show the job until it ends, then its outcome."""
    job = record.job or {}
    name = record.name
    page, start = "", time.monotonic()
    with progress(show_log=options.logs) as shown:
        shown.job(job)
        shown.training.epochs_wanted = epochs_wanted(job)
        replica = options.replica or main_replica(job)
        of_step = ProgressFile(os.environ if options.workflow is not None else {})

        def on_line(line: str) -> None:
            shown.log_line(line)
            of_step.update(shown.training)

        def on_change(current: dict[str, Any]) -> None:
            nonlocal page
            record.seen(current)
            shown.job(current)
            if not page and (page := job_page(current)):
                shown.note(f"page: {page}")

        outage = Outage(options.retry_timeout, say=shown.note)
        follower = LogFollower(client, job, replica, on_line, on_wait=shown.waiting, outage=outage)
        follower.start()
        try:
            async with replicas_shown(client, job, shown, outage), beside(show_comparison(client, job, shown)):
                await until_finished(client, job, outage=outage, on_change=on_change)
                if not await _finish(follower, shown):
                    shown.note(rest_of_log(job, replica))
            record.seen(await with_whole_result(client, record.job or {}, outage=outage))
        except DeletedError:
            record.say(gone_text(job, outage, f"job {name} was deleted by somebody else before it finished"))
            return Exit.FAILED if options.adopt is None else Exit.DELETED
        finally:
            with contextlib.suppress(Exception):
                await follower.cancel()
    job = record.job or {}
    record.message, took = terminal_message(job), short(time.monotonic() - start)
    try:
        replicas_wrote = await _written(client, job)
        if options.report is not None:
            await _write_report(client, job, replicas_wrote, options.report, shown)
        await _bring_files(client, job, replicas_wrote, options.output)
    except ReportError as error:
        say(record.message, style="green" if job_state(job) == SUCCEEDED else "red")
        if options.adopt is not None:  # 1 would say that the job Failed
            error.code, error.hint = Exit.TRY_AGAIN, "run the same command again: it finds the job"
        raise
    for warning in shown.training.warnings:
        say(warning, style="yellow")
    if job_state(job) == SUCCEEDED:
        say(f"{record.message} ({took})", style="green")
        return Exit.OK
    say(f"job {name} failed after {took}:", style="red")
    say(record.message)
    return Exit.FAILED


async def _finish(follower: LogFollower, shown: Progress) -> bool:
    """Read the rest of the log; returns whether all of it was shown, or why not."""
    try:
        return await follower.finish()
    except KubeError as error:
        shown.note(f"the log can't be shown: {error}")
        return True


async def _written(client: Client, job: dict[str, Any]) -> list[Written]:
    """List what the replicas wrote into their working directories, where those are on this machine."""
    if not is_local(client.server):
        return []
    return await asyncio.to_thread(files_written, job, await JobClient(client).replica_pods(JobRef.of(job)))


async def _bring_before_deletion(client: Client, record: Record, output: Path) -> None:
    """Copy what an interrupted job has written so far; whatever fails is said, and the job is deleted."""
    if record.job is None:
        return
    try:
        await _bring_files(client, record.job, await _written(client, record.job), output)
    except CommandError as error:
        say(error.message)


async def _bring_files(client: Client, job: dict[str, Any], replicas_wrote: list[Written], output: Path | None) -> None:
    """Say where what the job wrote is, and copy it to `output`."""
    is_here, volumes = is_local(client.server), kept_volumes(job)
    if output is not None and job_state(job) != SUCCEEDED:
        with contextlib.suppress(OSError):
            (output / names.OUTPUT_MARK).write_text(job["metadata"]["name"], encoding="utf-8")
    if output is not None and not is_here:
        await _bring_from_claim(client, job, output)
    elif output is not None and replicas_wrote:
        await asyncio.to_thread(bring_home, job, replicas_wrote, output)
    else:
        for each in replicas_wrote:
            say(f"files: {each}\n  {each.copy_command(job['metadata']['name'])}")
    for volume in volumes:
        in_cluster = is_here and volume.source == CLAIM
        folder = f" ({claim_folder(job['metadata']['namespace'], volume.name)})" if in_cluster else ""
        say(f"{'mounted' if is_here and not in_cluster else 'files'}: {volume}{folder}")
    if not replicas_wrote and not volumes:
        say("files: the replicas wrote none" if is_here else f"files: {NOTHING_KEPT}: --volume CLAIM:/PATH")


async def _bring_from_claim(client: Client, job: dict[str, Any], output: Path) -> None:
    try:
        folders = await bring_home_from_claim(client, in_v1_words(job), output)
    except (CommandError, KubeError, OSError) as error:
        raise ReportError(
            f"--output {output}: {error}", hint="the files are in the claim; for one file: mxjob cp JOB/REPLICA:PATH ."
        ) from error
    say(f"files: {', '.join(map(str, folders))}" if folders else "files: $MXJOB_OUTPUT_DIR of every replica is empty")


async def _write_report(
    client: Client, job: dict[str, Any], replicas_wrote: list[Written], path: Path, shown: Progress
) -> None:
    pods: dict[str, dict[str, Any]] = {}
    path_of_pods = PODS.path(job["metadata"]["namespace"])
    with contextlib.suppress(TimeoutError):
        # The tuning tracker, servers and others are still being stopped; the last version of a pod counts.
        async with (
            asyncio.timeout(_REST_OF_PODS),
            contextlib.aclosing(collections(client, path_of_pods, pod_selector(job))) as changes,
        ):
            async for present in changes:
                pods |= present
                if all(pod["status"].get("phase") in ENDED for pod in present.values()):
                    break
    local, events = local_job_files(client.server), []
    with contextlib.suppress(KubeError):  # a report without attempts is better than none
        events = await job_events(client, job)
    versions = await local.versions(images_of(job)) if local else None
    lines = list(map(str, replicas_wrote))
    read = functools.partial(
        run_of, job, pods.values(), shown.training, written=lines, events=events, versions=versions
    )
    await asyncio.to_thread(write_report, path, read)
    say(f"report: {path}")
