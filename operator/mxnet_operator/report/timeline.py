"""Time line of the replicas as inline SVG: when each was created, started and finished, and its outcome."""

from collections.abc import Callable
from datetime import datetime, timedelta
from html import escape
from itertools import chain
from typing import Final

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.readers.durations import short
from mxnet_operator.report.run import Replica, Run

_WIDTH: Final = 860
_LEFT: Final = 118
_RIGHT: Final = 112
_ROW: Final = 30
_BAR: Final = 16
_TOP: Final = 8
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)

Scale = Callable[[datetime], float]


def svg(run: Run) -> str:
    """Draw the time line as an SVG element; empty where no replica has a time."""
    span = _span(run)
    if span is None:
        return ""
    start, end = span
    seconds = max((end - start).total_seconds(), 1.0)

    def x(at: datetime) -> float:
        return _LEFT + (at - start).total_seconds() / seconds * (_WIDTH - _LEFT - _RIGHT)

    replicas = drawn(run)
    earlier = 1 if run.attempts else 0
    bottom = _TOP + _ROW * (len(replicas) + earlier)
    rows = (_row(replica, _TOP + _ROW * i, x, end) for i, replica in enumerate(replicas, earlier))
    return "".join(
        (
            f'<svg viewBox="0 0 {_WIDTH} {bottom + 40}" role="img" aria-label="{escape(description(run))}">',
            _HATCH,
            _axis(start, seconds, x, bottom),
            _earlier_attempts(run, x, start),
            *rows,
            "</svg>",
        )
    )


def description(run: Run) -> str:
    """Describe the time line in words, as alternative text."""
    restarts = f"{len(run.attempts)} earlier attempts failed. " if run.attempts else ""
    return f"Time line of the replicas. {restarts}" + " ".join(
        f"{replica.label} {_words(replica)}." for replica in drawn(run)
    )


def outcome(replica: Replica) -> str:
    """Format a replica's outcome in two words."""
    if replica.outcome == "unfinished":
        return replica.state or ("not finished" if replica.started_at else "not started")
    return (
        replica.outcome
        if replica.outcome == "stopped" or replica.exit_code is None
        else f"exit code {replica.exit_code}"
    )


def role(replica: Replica) -> str:
    """Return the role of a replica's type in the job, a class of the style: `root`, `serves`, `works` or `other`."""
    row = TYPES.get(names.canonical_type(replica.type) or "")
    if row is None:
        return "other"
    return "root" if row.is_root else "serves" if row.serves else "works" if row.works else "other"


_HATCH: Final = (
    '<defs><pattern id="failed" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="hatch" width="7" height="7"/><rect width="2" height="7" fill="#fff" fill-opacity=".45"/>'
    "</pattern></defs>"
)
_MOST_ROWS: Final = 40
"""Replicas that are drawn; of more, those that failed come first."""


def drawn(run: Run) -> tuple[Replica, ...]:
    """Return the replicas that the time line has room for, in their order."""
    if len(run.replicas) <= _MOST_ROWS:
        return run.replicas
    chosen = sorted(range(len(run.replicas)), key=lambda i: (run.replicas[i].outcome != "failed", i))[:_MOST_ROWS]
    return tuple(run.replicas[i] for i in sorted(chosen))


def _span(run: Run) -> tuple[datetime, datetime] | None:
    own = (run.started_at, run.completed_at)
    pods = ((r.created_at, r.started_at, r.finished_at) for r in run.replicas)
    attempts = (each.ended_at for each in run.attempts)
    times = [at for at in chain(own, *pods, attempts, (run.read_at,)) if at is not None]
    return (min(times), max(times)) if times and run.replicas else None


def _row(replica: Replica, top: float, x: Scale, end: datetime) -> str:
    middle = top + _ROW / 2
    parts = [
        f"<g><title>{escape(f'{replica.label} ({replica.pod}) {_words(replica)}')}</title>",
        f'<text x="{_LEFT - 12}" y="{middle + 4}" text-anchor="end">{escape(replica.label)}</text>',
    ]
    last = replica.finished_at or end
    if replica.created_at is not None:
        parts.append(_bar((x(replica.created_at), x(replica.started_at or last)), middle, 4, 'class="waits"'))
    if replica.started_at is not None:
        paint = 'fill="url(#failed)"' if replica.outcome == "failed" else f'class="{role(replica)}"'
        faded = ' fill-opacity=".45"' if replica.outcome in ("stopped", "unfinished") else ""
        parts.append(_bar((x(replica.started_at), x(last)), middle, _BAR, paint + faded))
    ink = "bad" if replica.outcome == "failed" else "quiet"
    parts.append(f'<text x="{x(last) + 8:.1f}" y="{middle + 4}" class="{ink}">{escape(outcome(replica))}</text></g>')
    return "".join(parts)


def _earlier_attempts(run: Run, x: Scale, start: datetime) -> str:
    """Draw a band for each attempt that ended in a restart: its pods are gone."""
    if not run.attempts:
        return ""
    middle = _TOP + _ROW / 2
    parts = [f'<text x="{_LEFT - 12}" y="{middle + 4}" text-anchor="end">earlier</text>']
    began = start
    for each in run.attempts:
        band = _bar((x(began), x(each.ended_at) - 1), middle, _BAR, 'fill="url(#failed)"')
        parts.append(f"<g><title>{escape(each.message)}</title>{band}</g>")
        began = each.ended_at
    count = len(run.attempts)
    parts.append(
        f'<text x="{x(began) + 8:.1f}" y="{middle + 4}" class="bad">{count} restart{"s" if count > 1 else ""}</text>'
    )
    return "".join(parts)


def _bar(ends: tuple[float, float], middle: float, height: float, paint: str) -> str:
    left, right = ends
    return (
        f'<rect x="{left:.1f}" y="{middle - height / 2}" width="{max(right - left, 2):.1f}" height="{height}"'
        f' rx="{min(height / 2, 3)}" {paint}/>'
    )


def _axis(start: datetime, seconds: float, x: Scale, bottom: float) -> str:
    step = next((s for s in _STEPS if seconds / s <= 10), _STEPS[-1])
    parts = []
    for second in range(0, int(seconds) + 1, step):
        at = x(start + timedelta(seconds=second))
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{bottom}" class="grid"/>'
            f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle" class="quiet">{short(second)}</text>'
        )
    return "".join(parts)


def _words(replica: Replica) -> str:
    if replica.started_at is None:
        return outcome(replica) if replica.outcome == "unfinished" else f"never started, {outcome(replica)}"
    ran = "" if replica.seconds is None else f"ran for {short(replica.seconds)}, "
    return f"started at {replica.started_at:%H:%M:%S}, {ran}{outcome(replica)}"
