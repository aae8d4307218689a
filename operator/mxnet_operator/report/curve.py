"""Training curves: the figures of each unit over the epochs, the accuracy first."""

import math
import re
from collections.abc import Mapping
from typing import Final

from mxnet_operator.report import chart
from mxnet_operator.report.chart import COLOURS, Chart, Series, percent, plain
from mxnet_operator.report.run import Run

_VALIDATION: Final = "validation_accuracy"
_SPEED: Final = "samples_per_second"
_ACCURACY: Final = "accuracy"
_FIRST: Final = {"accuracy": 0, "loss": 1, "perplexity": 2, "error": 3, "samples/s": 8, "seconds": 9}
_MOST_CHARTS: Final = 8
_ROLES: Final = {"train": "training", "validation": "validation", "test": "test"}
_ROLE: Final = re.compile(rf"(?P<role>{'|'.join(_ROLES)})(?:_(?P<measure>.+))?")
_UNITS: Final = (
    (
        "accuracy",
        re.compile(
            r"(.*_)?(accuracy|acc|f1|auc|top_?k?|top\d|precision|recall|m?iou|map|pixacc|hr|hits?|ndcg)(_.*|\d+)?"
        ),
    ),
    ("error", re.compile(r"(err|error)(_.*)?")),
    ("perplexity", re.compile(r"(.*_)?(perplexity|ppl)")),
    ("loss", re.compile(r"(.*_)?\w*(loss|entropy|nll|crossentropy)\d*(_[a-z](_(real|fake))?)?")),
    ("seconds", re.compile(r"time_cost|seconds|.*_seconds|time")),
    ("samples/s", re.compile(r"samples_per_second")),
)


def divergence(run: Run) -> int | None:
    """Return the first epoch after which a figure of the curve was not a finite number; None where all are."""
    return min((epoch for name in _names(run) for epoch in run.diverged(name)), default=None)


def description(run: Run, threshold: float | None) -> str:
    sentences = []
    for name in _names(run):
        if _unit_of(name) in {"samples/s", "seconds"}:
            continue
        words, show = _words_of(name).capitalize(), percent if _unit_of(name) == _ACCURACY else plain
        if points := run.history(name):
            (first, start), (last, end) = points[0], points[-1]
            after = f"after {run.unit}"
            sentences.append(f"{words} goes from {show(start)} {after} {first} to {show(end)} {after} {last}.")
        if lost := run.diverged(name):
            sentences.append(f"{words} is not a number after {_epochs(run.unit, lost)}: the training diverged.")
    points = run.history(_VALIDATION)
    if threshold is not None and points:
        reached = next((epoch for epoch, value in points if value >= threshold), None)
        when = "is never reached" if reached is None else f"is first reached after {run.unit} {reached}"
        sentences.append(f"The threshold of {threshold:.0%} {when}.")
    if speeds := [speed for _, speed in run.history(_SPEED)]:
        sentences.append(f"The worker trained on {plain(min(speeds))} to {plain(max(speeds))} samples per second.")
    return " ".join(sentences)


def html(run: Run, threshold: float | None) -> str:
    """Draw a chart for each unit; empty where the run has no figures."""
    units: dict[str, list[str]] = {}
    for name in _names(run):
        units.setdefault(_unit_of(name), []).append(name)
    ordered = sorted(units, key=lambda unit: _FIRST.get(unit, 5))[:_MOST_CHARTS]
    return "".join(chart.html(_chart(run, unit, units[unit], threshold)) for unit in ordered)


def latest(run: Run) -> tuple[str, str, str] | None:
    """Return name, value and epoch of the figure that says most, where there is no final accuracy; None without any."""
    order = sorted(_names(run), key=lambda name: (_FIRST.get(_unit_of(name), 5), name.startswith("train")))
    for name in order:
        if points := run.history(name):
            show = percent if _unit_of(name) == _ACCURACY else plain
            return _words_of(name).capitalize(), show(points[-1][1]), f"after {run.unit} {points[-1][0]}"
    return None


def _names(run: Run) -> tuple[str, ...]:
    """Return the figures that are drawn: all that the log has, and those of the result that have a usual name."""
    if not isinstance(run.result, Mapping):
        return ()
    known = {unit for unit, _ in _UNITS}
    names = (name for name in run.result if isinstance(name, str))
    named = (name for name in names if name in run.from_log or _unit_of(name) in known)
    return tuple(name for name in named if run.history(name) or run.diverged(name))


def _chart(run: Run, unit: str, names: list[str], threshold: float | None) -> Chart:
    colours = {name: _colour(name, number) for number, name in enumerate(names)}
    if len(set(colours.values())) < len(names):
        colours = {name: number % COLOURS for number, name in enumerate(names)}
    has_limit = unit == _ACCURACY and threshold is not None
    return Chart(
        title=unit or "figures",
        series=tuple(Series(_words_of(name), _with_gaps(run, name), colour=colours[name]) for name in names),
        across=f"{run.unit}s trained",
        description=_in_words(run, unit, names),
        limit=(f"threshold {threshold:.0%}", threshold) if has_limit and threshold is not None else None,
        percent=unit == _ACCURACY,
        from_zero=unit in {"samples/s", "seconds"},
    )


def _in_words(run: Run, unit: str, names: list[str]) -> str:
    ends = (f"{_words_of(name)} {plain(points[-1][1])}" for name in names if (points := run.history(name)))
    return f"Chart of {unit or 'figures'} over {run.unit}s. Last: {', '.join(ends) or 'not a number'}."


def _colour(name: str, number: int) -> int:
    """Return the colour of a line: the same for validation, and for training, in every chart."""
    return {"validation": 0, "train": 1, "test": 2}.get(name.split("_", maxsplit=1)[0], 3 + number % 3)


def _with_gaps(run: Run, name: str) -> tuple[tuple[float, float], ...]:
    return tuple(sorted([*run.history(name), *((epoch, math.nan) for epoch in run.diverged(name))]))


def _epochs(unit: str, epochs: tuple[int, ...]) -> str:
    """Format epochs from the first to the last: `epoch 4`, `epochs 4 to 7`."""
    return f"{unit} {epochs[0]}" if len(epochs) == 1 else f"{unit}s {epochs[0]} to {epochs[-1]}"


def _unit_of(name: str) -> str:
    """Return the unit of a figure by its name in a history: `loss` of `train_cross_entropy`, else what it measures."""
    measure = _measure(name)
    return next((unit for unit, pattern in _UNITS if pattern.fullmatch(measure)), measure)


def _words_of(name: str) -> str:
    """Return the name in words: `validation top k accuracy 5`."""
    found = _ROLE.fullmatch(name)
    role = _ROLES[found["role"]] if found else ""
    return f"{role} {_measure(name).replace('_', ' ')}".strip() if _measure(name) else role


def _measure(name: str) -> str:
    found = _ROLE.fullmatch(name)
    return (found["measure"] or "") if found else name
