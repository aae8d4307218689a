"""`mxjob get`: the jobs that are there, one line each, or as they are stored."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from mxnet_operator.api import names
from mxnet_operator.api.conditions import job_state
from mxnet_operator.cli.connection import (
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    Target,
    complete_job_name,
    connect,
)
from mxnet_operator.cli.errors import CommandError, Exit, leave
from mxnet_operator.cli.interrupts import unless_interrupted
from mxnet_operator.cli.jobs import JOBS, collections, not_there
from mxnet_operator.cli.progress import ready_counts
from mxnet_operator.cli.tables import Columns
from mxnet_operator.cli.terminal import say, write_line
from mxnet_operator.cli.times import job_duration, since

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

EXAMPLES = """
[bold]Examples[/]

  mxjob get

  mxjob get -A -o wide

  mxjob get digits -o json

  mxjob get digits --watch
"""

_ALWAYS_SHOWN = (names.SCHEDULER, names.SERVER, names.WORKER)

_WIDEST = {"NAME": "a-name-of-some-length", "STATE": "Terminating", "DURATION": "59m59s", "AGE": "59m59s"}
"""What later lines of a watch need room for."""

Job = dict[str, Any]


class Output(StrEnum):
    """The forms in which jobs are shown."""

    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def get(
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Default: all of them.", autocompletion=complete_job_name, show_default=False
        ),
    ] = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Those of every namespace.")] = False,
    selector: Annotated[
        str | None, typer.Option("--selector", "-l", metavar="LABELS", help="Such as team=a.", show_default=False)
    ] = None,
    output: Annotated[Output | None, typer.Option("--output", "-o", help="Default: a table.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on with a line per change, until Ctrl-C.")] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: NamespaceOption = None,
) -> None:
    """Show jobs: their state, how many replicas of each type are up or done of those wanted, restarts and times."""
    if name and (all_namespaces or selector):
        raise CommandError("a name goes with neither -A nor --selector", code=Exit.USAGE)
    if watch and output in {Output.JSON, Output.YAML, Output.NAME}:
        raise CommandError(f"--watch shows a table, not {output}", code=Exit.USAGE)
    target = Target(kubeconfig, context, namespace)
    chosen = {"labelSelector": selector} if selector else {}
    if name:
        chosen["fieldSelector"] = f"metadata.name={name}"
    leave(
        asyncio.run(
            unless_interrupted(_get(target, name, chosen, everywhere=all_namespaces, output=output, watch=watch))
        )
    )


async def _get(
    target: Target, name: str | None, chosen: dict[str, str], *, everywhere: bool, output: Output | None, watch: bool
) -> Exit:
    async with connect(target) as client:
        namespace = None if everywhere else target.namespace or client.namespace
        listed = await client.list(JOBS.path(namespace), chosen)
        jobs = sorted(listed["items"], key=lambda job: (job["metadata"]["namespace"], job["metadata"]["name"]))
        if name and not jobs:
            raise not_there(namespace or "", name)
        if output in {None, Output.WIDE}:
            rows = _show_table(jobs, namespace, wide=output is Output.WIDE, watch=watch)
            if watch:
                await _watch(client, namespace, chosen, jobs, rows)
        else:
            _write(jobs, output, alone=bool(name))
        return Exit.OK


def _write(jobs: list[Job], output: Output | None, *, alone: bool) -> None:
    if output is Output.NAME:
        for job in jobs:
            write_line(f"{names.SINGULAR}.{names.GROUP}/{job['metadata']['name']}")
        return
    kind = {"apiVersion": names.API_VERSION, "kind": names.KIND}
    items = [{**kind, **job} for job in jobs]
    data = items[0] if alone else {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}
    if output is Output.JSON:
        write_line(json.dumps(data, indent=4, ensure_ascii=False))
    else:
        write_line(yaml.safe_dump(data, sort_keys=False, allow_unicode=True).rstrip("\n"))


def _show_table(jobs: list[Job], namespace: str | None, *, wide: bool, watch: bool) -> Columns:
    heading, rows = table(jobs, wide=wide, with_namespace=namespace is None)
    widest = [_WIDEST.get(column, "") for column in heading]
    columns = Columns(heading, [*rows, widest] if watch else rows)
    if jobs or watch:
        columns.write(rows)
    if not jobs:
        say("no MXJobs" + (f" in namespace {namespace}" if namespace else ""))
    return columns


async def _watch(
    client: "Client", namespace: str | None, chosen: dict[str, str], jobs: list[Job], columns: Columns
) -> None:
    shown = {job["metadata"]["uid"]: job["metadata"]["resourceVersion"] for job in jobs}
    async with contextlib.aclosing(collections(client, JOBS.path(namespace), chosen)) as changes:
        async for found in changes:
            for uid, job in found.items():
                if shown.get(uid) != job["metadata"]["resourceVersion"]:
                    shown[uid] = job["metadata"]["resourceVersion"]
                    columns.write([_row(job, columns.heading)], heading=False)


def table(jobs: list[Job], *, wide: bool, with_namespace: bool) -> tuple[list[str], list[list[str]]]:
    """Heading and rows. Columns for a tuning's replicas are there where a job has such."""
    tuned = [
        kind for kind in names.REPLICA_TYPES if kind in names.TUNE_TYPES and any(kind in ready_counts(j) for j in jobs)
    ]
    heading = ["NAMESPACE"] if with_namespace else []
    heading += ["NAME", "STATE", *(kind.upper() for kind in (*_ALWAYS_SHOWN, *tuned)), "RESTARTS", "DURATION", "AGE"]
    heading += ["MODE", "MESSAGE"] if wide else []
    return heading, [_row(job, heading) for job in jobs]


def _row(job: Job, heading: Sequence[str]) -> list[str]:
    metadata, status = job["metadata"], job.get("status") or {}
    counts = {kind.upper(): f"{ready}/{wanted}" for kind, (ready, wanted) in ready_counts(job).items()}
    cells = {
        "NAMESPACE": metadata["namespace"],
        "NAME": metadata["name"],
        "STATE": "Terminating" if metadata.get("deletionTimestamp") else job_state(job) or "new",
        **counts,
        "RESTARTS": str(status.get("restarts", 0)),
        "DURATION": job_duration(job),
        "AGE": since(metadata.get("creationTimestamp")),
        "MODE": job["spec"].get("jobMode", ""),
        "MESSAGE": _message(job),
    }
    return [cells.get(column, "") for column in heading]


def _message(job: Job) -> str:
    """The first line of the condition that gives the state."""
    state = job_state(job)
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") == state:
            return next(iter((condition.get("message") or "").splitlines()), "")
    return ""
