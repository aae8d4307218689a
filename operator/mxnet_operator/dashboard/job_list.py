"""List of all jobs: state, progress, times and what each waits for."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from html import escape
from operator import attrgetter
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from mxnet_operator.api.conditions import job_state, terminal_message
from mxnet_operator.api.kinds import ALL, MXJOB, Kind
from mxnet_operator.client.jobs import collections, in_v1_words, ready_counts
from mxnet_operator.client.resources import resource_of
from mxnet_operator.dashboard.job_page import age
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.readers.durations import seconds_between, short
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.training_status import going_on
from mxnet_operator.report.document import last_line, scrolled, section, table

Jobs = dict[Kind, list[dict[str, Any]]]

PAGE: Final = 100
"""Jobs on a page."""


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


class View(NamedTuple):
    """What of the list a page shows, and in which order, as its address says."""

    state: str = ""
    filter: str = ""
    """Words that a row must have, each."""
    sort: str = "age"
    """Column, after `-` in the opposite order."""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "View":
        """Read the query of an address; what can't be read has its default."""
        sort, page = query.get("sort", ""), query.get("page", "")
        return cls(
            query.get("state", ""),
            query.get("filter", ""),
            sort if sort.removeprefix("-") in _ORDERS else cls().sort,
            int(page) if page.isdecimal() and 0 < len(page) < 6 else 1,
        )

    def link(self, **changes: Any) -> str:
        """Build the address of another view, as an attribute; a change leads to its first page."""
        view = self._replace(**{"page": 1, **changes})
        query = {key: value for key, value in view._asdict().items() if value != getattr(View(), key)}
        return escape(f"/?{urlencode(query)}" if query else "/")


def parts(jobs: Iterable[dict[str, Any]], trainings: Mapping[str, TrainingLog], view: View) -> dict[str, str]:
    """Build the parts of the page that change, by their ids.

    `trainings` has the progress of running jobs by uid.
    """
    rows = [_Row.of(job, trainings.get(job["metadata"]["uid"])) for job in jobs]
    words = view.filter.lower().split()
    found = [row for row in rows if all(word in row.text for word in words)]
    states = Counter(row.state for row in found)
    counts = "".join(_count(state, count, view) for state, count in sorted(states.items()))
    shown = [row for row in found if view.state in {"", row.state}]
    order, is_reversed = _ORDERS[view.sort.removeprefix("-")], view.sort.startswith("-")
    shown.sort(key=lambda row: row.name)
    shown.sort(key=order, reverse=is_reversed)
    first = min((view.page - 1) * PAGE, max(len(shown) - 1, 0) // PAGE * PAGE)
    content = scrolled("Table of the jobs", table(_heading(view), (row.html for row in shown[first : first + PAGE])))
    if not rows:
        content = "<p>There are no jobs. Run one: <code>mxjob run train.py --workers 2</code></p>"
    elif not shown:
        content = '<p class="quiet">No job matches.</p>'
    total = _count("", len(found), view)
    return {
        "facts": f'<dl class="facts" id="facts">{total}{counts}</dl>',
        "jobs": section("jobs", "Jobs", content + _pages(view, first, len(shown))),
    }


def body(found: dict[str, str], server: str, view: View) -> Iterator[str]:
    yield f'<header><p class="kind">{escape(server)}</p><h1>MXJobs</h1></header>'
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in (("state", view.state), ("sort", view.sort))
        if value
    )
    yield (
        f'<form class="bar">{hidden}<label>Filter <input type="search" id="filter" name="filter" '
        f'value="{escape(view.filter)}" placeholder="name, namespace, message" autocomplete="off" '
        'aria-keyshortcuts="/"></label> <span id="live" class="quiet" role="status"></span></form>'
    )
    yield from found.values()


def _count(state: str, count: int, view: View) -> str:
    current = ' aria-current="true"' if view.state == state else ""
    name = f'<span class="state {state.lower()}">{state or "All"}</span>'
    link = f'<a href="{view.link(state=state)}"{current}>{name}</a>'
    return f"<div><dt>{link}</dt><dd>{count}</dd></div>"


def _heading(view: View) -> Iterator[str]:
    for title in ("Name", "Namespace", "State", "Replicas", "Restarts", "Duration", "Age", "Message"):
        key = title.lower()
        if key not in _ORDERS:
            yield title
            continue
        arrow = {key: " \u25b2", f"-{key}": " \u25bc"}.get(view.sort, "")
        yield f'<a href="{view.link(sort=f"-{key}" if view.sort == key else key)}">{title}{arrow}</a>'


def _pages(view: View, first: int, count: int) -> str:
    if count <= PAGE:
        return ""
    page, last = first // PAGE + 1, min(first + PAGE, count)
    before = f'<a href="{view.link(page=page - 1)}">Previous</a> ' if first else ""
    after = f' <a href="{view.link(page=page + 1)}">Next</a>' if last < count else ""
    return f'<nav class="bar" aria-label="Pages">{before}<span>{first + 1} to {last} of {count}</span>{after}</nav>'


class _Row(NamedTuple):
    name: str
    namespace: str
    state: str
    restarts: int
    duration: float
    age: float
    """Seconds."""
    text: str
    """What the filter searches, in lower case."""
    why: str
    job: dict[str, Any]

    @classmethod
    def of(cls, job: dict[str, Any], training: TrainingLog | None) -> "_Row":
        metadata, status = job["metadata"], job.get("status") or {}
        state = "Terminating" if metadata.get("deletionTimestamp") else escape(job_state(job) or "new")
        name, namespace, now = metadata["name"], metadata["namespace"], datetime.now(UTC).isoformat()
        started, why = status.get("startTime"), _why(job, training)
        took = seconds_between(started, status.get("completionTime"))
        return cls(
            name,
            namespace,
            state,
            int(status.get("restarts") or 0),
            took if took is not None else seconds_between(started, now) or 0.0,
            seconds_between(metadata.get("creationTimestamp"), now) or 0.0,
            " ".join((name, namespace, state, why)).lower(),
            why,
            job,
        )

    @property
    def html(self) -> str:
        """Row of the table; only those of the shown page are built."""
        metadata, status, state = self.job["metadata"], self.job.get("status") or {}, self.state
        path, why = escape(f"/jobs/{self.namespace}/{self.name}/{metadata['uid']}"), escape(self.why)
        is_over = bool(status.get("startTime") and status.get("completionTime"))
        return (
            f'<tr id="{escape(metadata["uid"])}" class="{state.lower()}">'
            f'<th scope="row"><a href="{path}">{escape(self.name)}</a></th>'
            f'<td>{escape(self.namespace)}</td><td><span class="state {state.lower()}">{state}</span></td>'
            f"<td>{_progress(self.job)}</td><td>{self.restarts}</td>"
            f"<td>{short(self.duration) if is_over else age(status.get('startTime'))}</td>"
            f'<td>{age(metadata.get("creationTimestamp"))}</td><td class="long" title="{why}">{why}</td></tr>'
        )


def _why(job: dict[str, Any], training: TrainingLog | None) -> str:
    """Return why a job waits, how far its training is, or how it ended: of a failure, its last line first."""
    if going := going_on(job, training):
        return "; ".join(going)
    first, _, more = terminal_message(job).strip().partition("\n")
    return f"{cause} - {first}" if (cause := last_line(more)) else first


_ORDERS: Final = {name: attrgetter(name) for name in ("name", "namespace", "state", "restarts", "duration", "age")}
"""Columns that sort."""


def _progress(job: dict[str, Any]) -> str:
    counts = ready_counts(job)
    ready, wanted = (sum(column) for column in zip(*counts.values(), strict=True)) if counts else (0, 0)
    words = ", ".join(f"{kind.lower()} {here}/{asked}" for kind, (here, asked) in counts.items())
    bar = f'<progress max="{wanted}" value="{ready}" aria-label="{words}"></progress>' if wanted else ""
    return f'<span title="{words}">{bar} {ready}/{wanted}</span>'
