"""Page of one job: the parts of the report's page, its logs, conditions and events."""

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from mxnet_operator.api.conditions import TERMINAL, in_a_line, job_state
from mxnet_operator.client.job_events import event_time
from mxnet_operator.client.jobs import main_replica, pod_name, replicas
from mxnet_operator.dashboard.job_feed import JobFeed
from mxnet_operator.dashboard.job_run import run_of
from mxnet_operator.readers.pods import outcome_of
from mxnet_operator.readers.training_status import going_on
from mxnet_operator.report.document import scrolled, section, table
from mxnet_operator.report.page import sections

_MOST_EVENTS: Final = 100
_FEW: Final = 12
"""Replicas up to which they need no filter."""
_CUT: Final = '<p class="quiet">The log is too long for this page: its later epochs are not in the charts.</p>'


def parts(feed: JobFeed, *, is_live: bool = True, may_change: bool = False) -> dict[str, str]:
    """Build the parts of the page that change, by their ids; those that need a log only if `is_live`.

    `may_change` says whether the page can stop and rerun the job.
    """
    job = feed.job
    is_over = job_state(job) in TERMINAL
    waiting = "The job was deleted." if feed.is_deleted else "\n".join(going_on(job, feed.training))
    read_at = None if is_over else datetime.now(UTC)
    run = run_of(
        job,
        feed.pods,
        feed.training,
        read_at=read_at,
        message=waiting,
        written=feed.written,
        events=feed.events,
        versions=feed.versions,
    )
    found = sections(run)
    if not is_live:
        found["charts"] = section("charts", "Training", '<p class="quiet">Reading the log …</p>')
    elif feed.is_cut:
        found["charts"] = found["charts"].removesuffix("</section>") + _CUT + "</section>"
    found["actions"] = _actions(job) if may_change and not feed.is_deleted else '<div id="actions"></div>'
    return {**found, "tabs": _tabs(feed), "conditions": _conditions(job), "events": _events(feed.events)}


def body(found: dict[str, str], job: dict[str, Any], *, back: bool) -> Iterator[str]:
    """Build the page of its parts; `back` links to the list of jobs."""
    yield '<p class="bar">'
    yield '<a href="/">All jobs</a> ' if back else ""
    yield '<span id="live" class="quiet" role="status"></span></p>'
    yield from (found[name] for name in ("head", "actions", "facts", "attempts", "charts"))
    yield section("logs", "Logs", _logs(found["tabs"], len(replicas(job))))
    yield from (found[name] for name in ("files", "timeline", "replicas", "program", "conditions", "events"))


def _actions(job: dict[str, Any]) -> str:
    where = escape(f"/jobs/{job['metadata']['namespace']}/{job['metadata']['name']}/{job['metadata']['uid']}")
    if job_state(job) in TERMINAL:
        title, explanation, action, button = "Rerun", "Create a new job with the same spec.", "rerun", "Rerun the job"
    else:
        title, action, button = "Stop", "stop", "Stop the job"
        explanation = "The job fails, and its processes end. Its status, logs and files stay."
    return (
        f'<details id="actions" class="{action}"><summary>{title}</summary>'
        f'<form method="post" action="{where}/{action}"><p>{explanation}</p><button>{button}</button></form></details>'
    )


def _logs(tabs: str, count: int) -> str:
    filtered = (
        '<label>Filter replicas <input type="search" data-filter="#tabs button, #replicas tbody tr" '
        'autocomplete="off"></label>'
        if count > _FEW
        else ""
    )
    return (
        f'{filtered}{tabs}<div class="bar"><label><input type="checkbox" id="follow" checked> Follow</label>'
        '<button type="button" id="copy">Copy</button><a id="download" class="button" download>Download</a></div>'
        '<pre id="log" role="tabpanel" tabindex="0" aria-label="Log"></pre>'
    )


def _tabs(feed: JobFeed) -> str:
    outcomes = {pod["metadata"]["name"]: outcome_of(pod) for pod in feed.pods}
    name, main = feed.job["metadata"]["name"], main_replica(feed.job)
    tabs = "".join(
        f'<button type="button" role="tab" id="tab-{replica}" data-replica="{replica}" aria-controls="log" '
        f'aria-selected="{"true" if replica == main else "false"}" tabindex="{0 if replica == main else -1}" '
        f'class="{outcomes.get(pod_name(name, replica), "none")}">{replica}</button>'
        for replica in map(escape, replicas(feed.job))
    )
    return f'<div id="tabs" role="tablist" aria-label="Replicas">{tabs}</div>'


def _conditions(job: dict[str, Any]) -> str:
    rows = (
        f'<tr><th scope="row">{escape(each["type"])}</th><td>{escape(str(each.get("status")))}</td>'
        f"<td>{age(each.get('lastTransitionTime'))}</td><td>{escape(each.get('reason') or '')}</td>"
        f'<td class="long">{escape(in_a_line(each.get("message") or ""))}</td></tr>'
        for each in (job.get("status") or {}).get("conditions") or ()
    )
    found = table(("Type", "Status", "Since", "Reason", "Message"), rows)
    return section("conditions", "Conditions", scrolled("Table of the conditions", found, "words"))


def _events(events: list[dict[str, Any]]) -> str:
    if not events:
        return section("events", "Events", '<p class="quiet">No events, or no permission to read them.</p>')
    found = table(("Last seen", "Type", "Reason", "Object", "Message"), map(_event, reversed(events[-_MOST_EVENTS:])))
    return section("events", "Events", scrolled("Table of the events", found, "words"))


def _event(event: dict[str, Any]) -> str:
    times = (event.get("series") or {}).get("count") or event.get("count") or 1
    often = f" ({times} times)" if times > 1 else ""
    given = (event.get("type"), event.get("reason"), event["involvedObject"].get("name"))
    cells = "".join(f"<td>{escape(each or '')}</td>" for each in given)
    return (
        f"<tr><td>{age(event_time(event).isoformat())}</td>{cells}"
        f'<td class="long">{escape(in_a_line(event.get("message") or "") + often)}</td></tr>'
    )


def age(time: str | None) -> str:
    """Build a time that the page's script shows as an age."""
    return f'<time datetime="{escape(time)}">{escape(time)}</time>' if time else ""
