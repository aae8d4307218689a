"""HTML page of the report: facts, pictures and table in one file."""

import base64
from collections.abc import Iterable, Mapping
from datetime import datetime
from html import escape
from typing import Any

from mxnet_operator.report import curve, timeline, tuning
from mxnet_operator.report.document import document
from mxnet_operator.report.run import Replica, Run, Tuning


def html(job: Run | Mapping[str, Any], *, threshold: float | None = None) -> str:
    """Build the report on one finished job.

    Args:
        job: The run, or a mapping of its fields such as `MXNetJobOperator` returns.
        threshold: The accuracy, a share from 0 to 1, that the job had to reach; None if there was none.

    Returns:
        An HTML document that refers to nothing outside itself.

    Raises:
        MissingMatplotlibError: there is a curve to draw, and matplotlib is not installed.
        msgspec.ValidationError: the mapping does not describe a run.
    """
    run = Run.of(job)
    sections = (_facts(run, threshold), _picture(run, threshold), _timeline(run), _table(run))
    return document(run.name, run.namespace, run.state, run.message, sections)


def _facts(run: Run, threshold: float | None) -> str:
    facts = []
    if run.accuracy is not None:
        note = "" if threshold is None else _against_threshold(run.accuracy, threshold)
        facts.append(("Accuracy", f"{run.accuracy:.2%}", note))
    if run.tuning is not None:
        facts.append(("Time per run", tuning.milliseconds(run.tuning.tuned_ms), _gain(run.tuning)))
        facts.append(("Trials", str(len(run.tuning.trials_ms)), tuning.shares(run.tuning)))
    if run.epochs is not None:
        facts.append(("Epochs", str(run.epochs), ""))
    if (diverged := curve.divergence(run)) is not None:
        facts.append(("Diverged", f"epoch {diverged}", "the first whose accuracy is not a number"))
    if run.duration_s is not None:
        facts.append(("Duration", _duration(run.duration_s), "from start to completion"))
    facts.append(("Replicas", str(len(run.replicas)), _counted(run.replicas)))
    if run.started_at is not None:
        facts.append(("Started", f"{run.started_at:%H:%M:%S}", f"{run.started_at:%d %B %Y}, UTC"))
    items = "".join(
        f'<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd><dd class="quiet">{escape(note)}</dd></div>'
        for name, value, note in facts
    )
    return f'<dl class="facts">{items}</dl>'


def _against_threshold(accuracy: float, threshold: float) -> str:
    return f"{'reaches' if accuracy >= threshold else 'misses'} the {threshold:.0%} asked for"


def _gain(tuned: Tuning) -> str:
    return f"{tuning.milliseconds(tuned.untuned_ms)} before: {tuned.gain:.1f} times as fast"


def _picture(run: Run, threshold: float | None) -> str:
    if run.tuning is not None:
        return _figure("Tuning", tuning.svg(run, run.tuning), tuning.description(run.tuning))
    if not curve.has_curve(run):
        return '<section><h2>Training</h2><p class="quiet">The job reported no accuracy for its epochs.</p></section>'
    return _figure("Training", curve.svg(run, threshold), curve.description(run, threshold))


def _figure(title: str, svg: bytes, description: str) -> str:
    picture, words = base64.b64encode(svg).decode("ascii"), escape(description)
    return (
        f'<section><h2>{title}</h2><figure><img src="data:image/svg+xml;base64,{picture}" alt="{words}">'
        f"<figcaption>{words}</figcaption></figure></section>"
    )


def _timeline(run: Run) -> str:
    picture = timeline.svg(run)
    if not picture:
        return ""
    caption = (
        "Seconds since the job began. A thin grey line: the pod was waiting; a bar: its container ran; "
        "a pale bar: until it was stopped; hatched red: until it failed."
    )
    return f"<section><h2>Replicas over time</h2><figure>{picture}<figcaption>{caption}</figcaption></figure></section>"


def _table(run: Run) -> str:
    if not run.replicas:
        return '<section><h2>Replicas</h2><p class="quiet">The pods were gone when the job was read.</p></section>'
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Replica", "Pod", "Started", "Ran for", "Ended with"))
    rows = "\n".join(_table_row(replica) for replica in run.replicas)
    return (
        f'<section><h2>Replicas</h2><div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody>'
        "</table></div></section>"
    )


def _table_row(replica: Replica) -> str:
    seconds = replica.seconds
    return (
        f'<tr class="{replica.outcome}"><th scope="row">'
        f'<span class="dot" style="background:{timeline.colour(replica)}"></span>'
        f"{escape(replica.label)}</th><td><code>{escape(replica.pod)}</code></td>"
        f"<td>{_time(replica.started_at)}</td><td>{'' if seconds is None else _duration(seconds)}</td>"
        f"<td>{escape(timeline.outcome(replica))}</td></tr>"
    )


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at:%H:%M:%S}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _counted(replicas: Iterable[Replica]) -> str:
    counts: dict[str, int] = {}
    for replica in replicas:
        counts[replica.type.lower()] = counts.get(replica.type.lower(), 0) + 1
    return ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items())
