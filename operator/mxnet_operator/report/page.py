"""HTML page of the report: facts, pictures and table in one file."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from html import escape
from typing import Any, Final

import msgspec

from mxnet_operator.api.conditions import FAILED
from mxnet_operator.readers.durations import short
from mxnet_operator.report import curve, timeline, tuning
from mxnet_operator.report.document import document, message, scrolled, section, table
from mxnet_operator.report.run import Replica, Run

_NO_FILES: Final = '<p class="quiet">The replicas wrote no files that outlive their pods.</p>'


def html(job: Run | Mapping[str, Any], *, threshold: float | None = None) -> str:
    """Build the report on one finished job.

    Args:
        job: The run, or a mapping of its fields such as `MXNetJobOperator` returns.
        threshold: The accuracy, a share from 0 to 1, that the job had to reach; None if there was none.

    Returns:
        An HTML document that refers to nothing outside itself.

    Raises:
        msgspec.ValidationError: the mapping does not describe a run.
    """
    run = job if isinstance(job, Run) else msgspec.convert(job, Run)
    return document(f"{run.name}: {run.state}", sections(run, threshold).values())


def sections(run: Run, threshold: float | None = None) -> dict[str, str]:
    """Build the parts of a job's page by their ids."""
    return {
        "head": _head(run),
        "facts": _facts(run, threshold),
        "attempts": _attempts(run),
        "charts": _charts(run, threshold),
        "files": _files(run),
        "timeline": _timeline(run),
        "replicas": _replicas(run),
        "program": _program(run),
    }


def _head(run: Run) -> str:
    title, word = escape(run.name), escape(run.state)
    said = message(run.message, is_failure=run.state == FAILED)
    return (
        f'<header id="head">\n<p class="kind">MXJob in namespace {escape(run.namespace)}</p>\n'
        f'<h1>{title} <span class="state {word.lower()}">{word}</span></h1>\n{said}\n</header>'
    )


def _facts(run: Run, threshold: float | None) -> str:
    facts = []
    if run.accuracy is not None:
        reaches = threshold is not None and run.accuracy >= threshold
        note = "" if threshold is None else f"{'reaches' if reaches else 'misses'} the {threshold:.0%} asked for"
        facts.append(("Accuracy", f"{run.accuracy:.2%}", note))
    if run.tuning is not None:
        gain = f"{tuning.milliseconds(run.tuning.untuned_ms)} before: {run.tuning.gain:.1f} times as fast"
        facts.append(("Time per run", tuning.milliseconds(run.tuning.tuned_ms), gain))
        facts.append(("Trials", str(len(run.tuning.trials_ms)), tuning.shares(run.tuning)))
    elif run.accuracy is None and (latest := curve.latest(run)) is not None:
        facts.append(latest)
    if run.epochs is not None:
        facts.append(("Epochs", str(run.epochs), ""))
    if (diverged := curve.divergence(run)) is not None:
        facts.append(("Diverged", f"epoch {diverged}", "the first with a figure that is not a number"))
    if run.duration_s is not None:
        facts.append(("Duration", short(run.duration_s), "from start to completion"))
    elif run.read_at is not None and run.started_at is not None:
        facts.append(("Running for", short((run.read_at - run.started_at).total_seconds()), ""))
    if run.restarts is not None:
        facts.append(("Restarts", str(run.restarts), ""))
    counts = Counter(replica.type.lower() for replica in run.replicas)
    counted = ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items())
    facts.append(("Replicas", str(len(run.replicas)), counted))
    if run.started_at is not None:
        facts.append(("Started", f"{run.started_at:%H:%M:%S}", f"{run.started_at:%d %B %Y}, UTC"))
    items = "".join(
        f'<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd><dd class="quiet">{escape(note)}</dd></div>'
        for name, value, note in facts
    )
    return f'<dl class="facts" id="facts">{items}</dl>'


def _charts(run: Run, threshold: float | None) -> str:
    title, charts, words = "Training", "", ""
    if run.tuning is not None:
        title, charts, words = "Tuning", tuning.html(run.tuning), tuning.description(run.tuning)
    elif charts := curve.html(run, threshold):
        words = curve.description(run, threshold)
    elif run.read_at is None:
        words = "The job reported no accuracy, loss or other figures of its epochs."
    else:
        words = "No figures of an epoch so far."
    words = " ".join(filter(None, (words, run.slow)))
    return section("charts", title, f'<div class="charts">{charts}</div><p class="quiet">{escape(words)}</p>')


def _attempts(run: Run) -> str:
    if not run.restarts:
        return _absent("attempts")
    first = run.restarts - len(run.attempts) + 1
    begins = [run.started_at if first == 1 else None, *(each.ended_at for each in run.attempts)]
    rows = [
        f'<tr><th scope="row">{number}</th><td>{_time(each.ended_at)}</td>'
        f'<td>{_between(began, each.ended_at)}</td><td class="long">{message(each.message, is_failure=True)}</td></tr>'
        for number, (began, each) in enumerate(zip(begins, run.attempts, strict=False), first)
    ]
    rows.append(
        f'<tr class="{escape(run.state.lower())}"><th scope="row">{run.restarts + 1}</th>'
        f"<td>{_time(run.completed_at)}</td><td>{_between(begins[-1], run.completed_at)}</td>"
        f'<td class="long">{escape(run.state)}</td></tr>'
    )
    lost = "" if first <= 1 else '<p class="quiet">Earlier attempts have no event any more.</p>'
    found = table(("Attempt", "Ended", "After", "Why"), rows)
    return section("attempts", "Attempts", scrolled("Table of the attempts", found, "words") + lost)


def _between(start: datetime | None, end: datetime | None) -> str:
    return "" if start is None or end is None else short((end - start).total_seconds())


def _program(run: Run) -> str:
    if not run.programs:
        return _absent("program")
    rows = (
        f'<tr><th scope="row">{escape(each.type)}</th><td class="long"><code>{escape(each.command)}</code></td>'
        f'<td class="long"><code>{escape(each.image)}</code></td><td class="long">{escape(each.versions)}</td></tr>'
        for each in run.programs
    )
    found = table(("Replicas", "Command", "Image", "Versions"), rows)
    return section("program", "Program", scrolled("Table of the programs", found, "words"))


def _absent(name: str) -> str:
    return f'<section id="{name}" hidden></section>'


def _files(run: Run) -> str:
    if run.files is None:
        return _absent("files")
    lines = "".join(f"<li><code>{escape(each)}</code></li>" for each in run.files)
    return section("files", "Files", f"<ul>{lines}</ul>" if lines else _NO_FILES)


def _timeline(run: Run) -> str:
    picture = timeline.svg(run)
    if not picture:
        return _absent("timeline")
    caption = (
        "Time since the job began. A thin grey line: the pod was waiting; a bar: its container ran; "
        "a pale bar: until it was stopped; hatched red: until it failed."
    )
    if run.attempts:
        caption += " Pods of earlier attempts are gone: a bar shows when each attempt ended."
    figure = f'<figure class="timeline">{scrolled("Time line", picture)}<figcaption>{caption}</figcaption></figure>'
    return section("timeline", "Replicas over time", figure)


def _replicas(run: Run) -> str:
    if not run.replicas:
        return section("replicas", "Replicas", '<p class="quiet">The pods were gone when the job was read.</p>')
    rows = table(("Replica", "Pod", "Started", "Ran for", "State"), map(_row, run.replicas))
    return section("replicas", "Replicas", scrolled("Table of the replicas", rows))


def _row(replica: Replica) -> str:
    seconds, rank = replica.seconds, "" if replica.rank is None else f" (rank {replica.rank})"
    return (
        f'<tr class="{replica.outcome}"><th scope="row">'
        f'<span class="dot {timeline.role(replica)}"></span>'
        f"{escape(replica.label + rank)}</th><td><code>{escape(replica.pod)}</code></td>"
        f"<td>{_time(replica.started_at)}</td><td>{'' if seconds is None else short(seconds)}</td>"
        f"<td>{escape(timeline.outcome(replica))}</td></tr>"
    )


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at:%H:%M:%S}"
