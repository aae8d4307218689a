"""`mxjob get`: list jobs, one line each, or print them as stored."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from mxnet_operator.api.conditions import in_a_line, job_state
from mxnet_operator.api.kinds import ALL, MXJOB, Kind
from mxnet_operator.api.manifest_text import dump
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.cli.command import asks_server, option
from mxnet_operator.cli.errors import Exit, UsageError
from mxnet_operator.cli.output.tables import Columns
from mxnet_operator.cli.output.terminal import say, write_line
from mxnet_operator.cli.output.times import job_duration, since
from mxnet_operator.cli.server.connection import Client, Target, complete_job_name, connect
from mxnet_operator.cli.server.job_kinds import Job, find_job, namespace_missing, type_name
from mxnet_operator.client.jobs import collections, in_v1_words, kind_of_job, ready_counts
from mxnet_operator.client.resources import resource_of
from mxnet_operator.client.stored_jobs import stored_jobs
from mxnet_operator.client.training import running_trainings
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.training_status import going_on

EXAMPLES = """
[bold]Examples[/]

  mxjob get

  mxjob get -A -o wide

  mxjob get digits -o json

  mxjob get digits --watch
"""

_ALWAYS_SHOWN = tuple(each.name for each in TYPES.values() if not each.tunes)

_WIDEST = {"NAME": "a-name-of-some-length", "STATE": "Terminating", "DURATION": "59m59s", "AGE": "59m59s"}
"""Widest usual cells of columns, as room for the later lines of a watch."""


class Output(StrEnum):
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@asks_server
async def get(
    target: Target,
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Job name; default: all jobs.", autocompletion=complete_job_name),
    ] = None,
    all_namespaces: bool = option("--all-namespaces", "-A", default=False, help="List jobs in all namespaces."),
    selector: str | None = option("--selector", "-l", metavar="LABELS", help="Label selector, such as team=a."),
    output: Output | None = option("--output", "-o", help="Output format; default: a table."),
    watch: bool = option("--watch", "-w", default=False, help="Then print a line per change, until Ctrl-C."),
) -> Exit:
    """List jobs: state, replicas of each type that run or have succeeded of those wanted, restarts and times."""
    if name is not None and (all_namespaces or selector):
        raise UsageError("a job name can't be combined with --all-namespaces or --selector")
    if watch and output not in {None, Output.WIDE}:
        raise UsageError(f"--watch prints a table: it can't be combined with --output {output}")
    chosen = {"labelSelector": selector} if selector else {}
    async with connect(target) as client:
        namespace = None if all_namespaces else target.namespace or client.namespace
        jobs = (
            [await find_job(client, namespace or "", name)]
            if name is not None
            else await stored_jobs(client, namespace, chosen)
        )
        if output not in {None, Output.WIDE}:
            _write(jobs, output, alone=name is not None)
            return Exit.OK
        readable = [in_v1_words(job) for job in jobs]
        trainings = await running_trainings(client, readable) if output is Output.WIDE else {}
        heading, rows = table(readable, trainings, wide=output is Output.WIDE, with_namespace=namespace is None)
        widest = [_WIDEST.get(column, "") for column in heading]
        columns = Columns(heading, [*rows, widest] if watch else rows)
        if jobs or watch:
            columns.write(rows)
        if not jobs:
            say("no MXJobs" + (f" in namespace {namespace}" if namespace else ""))
            if namespace and await namespace_missing(client, namespace):
                say(f"there is no namespace {namespace}; list all jobs: mxjob get -A")
        if watch:
            kinds = [kind_of_job(job) for job in jobs] if name else ALL
            if name:
                chosen["fieldSelector"] = f"metadata.name={jobs[0]['metadata']['name']}"
            shown = {job["metadata"]["uid"]: job["metadata"]["resourceVersion"] for job in jobs}
            await asyncio.gather(*(_watch(client, kind, namespace, chosen, shown, columns) for kind in kinds))
        return Exit.OK


def _write(jobs: list[Job], output: Output | None, *, alone: bool) -> None:
    if output is Output.NAME:
        for job in jobs:
            write_line(f"{type_name(kind_of_job(job))}/{job['metadata']['name']}")
        return
    data = jobs[0] if alone else {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": jobs}
    if output is Output.JSON:
        write_line(json.dumps(data, indent=4, ensure_ascii=False))
    else:
        write_line(dump(data).rstrip("\n"))


async def _watch(  # noqa: PLR0917
    client: Client, kind: Kind, namespace: str | None, chosen: dict[str, str], shown: dict[str, str], columns: Columns
) -> None:
    """Write a line for each change of a job of this kind; `shown` has the version of each uid that was written."""
    header = {"apiVersion": kind.api_version, "kind": kind.kind}
    try:
        async with contextlib.aclosing(collections(client, resource_of(kind).path(namespace), chosen)) as changes:
            async for found in changes:
                for uid, job in found.items():
                    if shown.get(uid) != job["metadata"]["resourceVersion"]:
                        shown[uid] = job["metadata"]["resourceVersion"]
                        columns.write([_row(in_v1_words({**header, **job}), columns.heading)], heading=False)
    except ApiError as error:
        if kind is MXJOB or error.code not in {403, 404}:  # other kinds may be absent or forbidden
            raise


def table(
    jobs: list[Job], trainings: dict[str, TrainingLog], *, wide: bool, with_namespace: bool
) -> tuple[list[str], list[list[str]]]:
    """Build the heading and rows of a table of jobs; `trainings` has the progress of running ones by uid.

    Columns of a tuning's replica types are included if a job has such, TYPE if a job isn't kubeflow.org's MXJob.
    """
    tuned = [kind for kind, each in TYPES.items() if each.tunes and any(kind in ready_counts(j) for j in jobs)]
    heading = ["NAMESPACE"] if with_namespace else []
    heading += ["TYPE"] if any(kind_of_job(job) is not MXJOB for job in jobs) else []
    heading += ["NAME", "STATE", *(kind.upper() for kind in (*_ALWAYS_SHOWN, *tuned)), "RESTARTS", "DURATION", "AGE"]
    heading += ["MODE", "MESSAGE"] if wide else []
    return heading, [_row(job, heading, trainings.get(job["metadata"]["uid"])) for job in jobs]


def _row(job: Job, heading: Sequence[str], training: TrainingLog | None = None) -> list[str]:
    metadata, status = job["metadata"], job.get("status") or {}
    counts = {kind.upper(): f"{ready}/{wanted}" for kind, (ready, wanted) in ready_counts(job).items()}
    cells = {
        "NAMESPACE": metadata["namespace"],
        "TYPE": type_name(kind_of_job(job)),
        "NAME": metadata["name"],
        "STATE": "Terminating" if metadata.get("deletionTimestamp") else job_state(job) or "new",
        **counts,
        "RESTARTS": str(status.get("restarts", 0)),
        "DURATION": job_duration(job),
        "AGE": since(metadata.get("creationTimestamp")),
        "MODE": job["spec"].get("jobMode", ""),
        "MESSAGE": _message(job, training),
    }
    return [cells.get(column, "") for column in heading]


def _message(job: Job, training: TrainingLog | None) -> str:
    """Return what the job waits for, else how far its training is, else its state's condition message."""
    if going := going_on(job, training):
        return "; ".join(going)
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") == job_state(job):
            return in_a_line(condition.get("message") or "")
    return ""
