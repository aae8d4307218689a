"""List of all jobs: state, progress, times and what each waits for."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from html import escape
from typing import Any

from mxnet_operator.api.conditions import RUNNING, in_a_line, job_state, terminal_message
from mxnet_operator.api.kinds import ALL, MXJOB, Kind
from mxnet_operator.client.jobs import collections, in_v1_words, ready_counts
from mxnet_operator.client.resources import resource_of
from mxnet_operator.dashboard.job_page import age
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.readers.durations import seconds_between, short
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.training_status import status_summary
from mxnet_operator.readers.waiting import waiting_reasons
from mxnet_operator.report.document import scrolled, section, table

Jobs = dict[Kind, list[dict[str, Any]]]


async def all_jobs(client: Client, namespace: str | None, tick: float) -> AsyncGenerator[list[dict[str, Any]]]:
    """Yield the jobs of all kinds, in the words of v1, with each change and every `tick` seconds.

    Raises:
        ApiError, ApiUnavailable: those of kubeflow.org can't be watched.
    """
    found: Jobs = {}
    changed = asyncio.Event()

    async def watch(kind: Kind) -> None:
        header = {"apiVersion": kind.api_version, "kind": kind.kind}
        try:
            async with contextlib.aclosing(collections(client, resource_of(kind).path(namespace))) as changes:
                async for jobs in changes:
                    found[kind] = [in_v1_words({**header, **job}) for job in jobs.values()]
                    changed.set()
        except ApiError as error:
            if kind is MXJOB or error.code not in {403, 404}:  # other kinds may be absent or forbidden
                raise
            found[kind] = []
            changed.set()

    watching = {kind: asyncio.create_task(watch(kind)) for kind in ALL}
    try:
        while True:
            waiting = asyncio.create_task(changed.wait())
            unended = [task for task in watching.values() if not task.done() or task.exception()]
            try:
                await asyncio.wait({waiting, *unended}, timeout=tick, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            for task in unended:
                if task.done():
                    task.result()
            changed.clear()
            if len(found) == len(ALL):
                yield [job for of_kind in found.values() for job in of_kind]
    finally:
        for task in watching.values():
            task.cancel()
        await asyncio.gather(*watching.values(), return_exceptions=True)


def parts(jobs: Iterable[dict[str, Any]], trainings: Mapping[str, TrainingLog]) -> dict[str, str]:
    """Build the parts of the page that change, by their ids; the newest job comes first.

    `trainings` has the progress of running jobs by uid.
    """
    newest = sorted(jobs, key=lambda job: str(job["metadata"].get("creationTimestamp")), reverse=True)
    states = Counter(_state(job) for job in newest)
    counts = "".join(
        f'<div><dt><span class="state {state.lower()}">{state}</span></dt><dd>{count}</dd></div>'
        for state, count in states.items()
    )
    heading = ("Name", "Namespace", "State", "Replicas", "Restarts", "Duration", "Age", "Message")
    rows = table(heading, (_row(job, trainings.get(job["metadata"]["uid"])) for job in newest))
    if not newest:
        rows = "<p>There are no jobs. Run one: <code>mxjob run train.py --workers 2</code></p>"
    return {
        "facts": f'<dl class="facts" id="facts"><div><dt>Jobs</dt><dd>{len(newest)}</dd></div>{counts}</dl>',
        "jobs": section("jobs", "Jobs", scrolled("Table of the jobs", rows)),
    }


def body(found: dict[str, str], server: str) -> Iterator[str]:
    """Build the page of its parts."""
    yield f'<header><p class="kind">{escape(server)}</p><h1>MXJobs</h1></header>'
    yield (
        '<p class="bar"><label>Filter <input type="search" id="filter" data-filter="#jobs tbody tr" '
        'placeholder="name, namespace, state" autocomplete="off" aria-keyshortcuts="/"></label> '
        '<span id="live" class="quiet" role="status"></span></p>'
    )
    yield from found.values()


def _state(job: dict[str, Any]) -> str:
    return "Terminating" if job["metadata"].get("deletionTimestamp") else escape(job_state(job) or "new")


def _row(job: dict[str, Any], training: TrainingLog | None) -> str:
    metadata, status, state = job["metadata"], job.get("status") or {}, _state(job)
    name, namespace = escape(metadata["name"]), escape(metadata["namespace"])
    started, completed = status.get("startTime"), status.get("completionTime")
    took = seconds_between(started, completed)
    read = training.summary() if training else []
    progress = read or (status_summary(job) if job_state(job) == RUNNING else [])
    why = "; ".join(waiting_reasons(job) or progress) or in_a_line(terminal_message(job))
    return (
        f'<tr id="{escape(metadata["uid"])}" class="{state.lower()}">'
        f'<th scope="row"><a href="/jobs/{namespace}/{name}/{escape(metadata["uid"])}">{name}</a></th>'
        f'<td>{namespace}</td><td><span class="state {state.lower()}">{state}</span></td>'
        f"<td>{_progress(job)}</td><td>{int(status.get('restarts') or 0)}</td>"
        f"<td>{age(started) if took is None else short(took)}</td><td>{age(metadata.get('creationTimestamp'))}</td>"
        f'<td class="long">{escape(why)}</td></tr>'
    )


def _progress(job: dict[str, Any]) -> str:
    counts = ready_counts(job)
    ready, wanted = (sum(column) for column in zip(*counts.values(), strict=True)) if counts else (0, 0)
    words = ", ".join(f"{kind.lower()} {here}/{asked}" for kind, (here, asked) in counts.items())
    bar = f'<progress max="{wanted}" value="{ready}" aria-label="{words}"></progress>' if wanted else ""
    return f'<span title="{words}">{bar} {ready}/{wanted}</span>'
