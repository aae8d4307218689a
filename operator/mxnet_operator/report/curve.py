"""Training curve: accuracy over epochs, and below it samples per second."""

import math
from typing import Any, Final

from mxnet_operator.report.drawing import GREY, drawn
from mxnet_operator.report.run import Run

_VALIDATION: Final = "validation_accuracy"
_TRAIN: Final = "train_accuracy"
_SPEED: Final = "samples_per_second"
_SERIES: Final = ((_TRAIN, "training", "#8a6d1f", 1.4), (_VALIDATION, "validation", "#0b5cad", 2.4))
Points = tuple[tuple[int, float], ...]
_SPEED_COLOUR: Final = "#1b7f5c"
_LIMIT: Final = "#b3261e"
_LOST: Final = {"color": _LIMIT, "linestyle": "none", "marker": "x", "markersize": 8, "label": "not a number"}
_HIGH: Final = 3.9
_LOW: Final = 1.9
"""Inches."""


def has_curve(run: Run) -> bool:
    """Whether the script or its log reported figures for a curve."""
    return _has_accuracy(run) or bool(run.history(_SPEED))


def divergence(run: Run) -> int | None:
    """Return the first epoch after which a figure of the curve was not a finite number; None where all are."""
    return min((epoch for name in (_VALIDATION, _TRAIN) for epoch in run.diverged(name)), default=None)


def description(run: Run, threshold: float | None) -> str:
    """Describe the picture in words, as alternative text."""
    sentences = []
    for name, words in ((_VALIDATION, "Validation"), (_TRAIN, "Training")):
        if points := run.history(name):
            (first, start), (last, end) = points[0], points[-1]
            sentences.append(
                f"{words} accuracy goes from {start:.1%} after epoch {first} to {end:.1%} after epoch {last}."
            )
        if lost := run.diverged(name):
            sentences.append(f"{words} accuracy is not a number after {_epochs(lost)}: the training diverged.")
    points = run.history(_VALIDATION)
    if threshold is not None and points:
        reached = next((epoch for epoch, value in points if value >= threshold), None)
        when = "is never reached" if reached is None else f"is first reached after epoch {reached}"
        sentences.append(f"The threshold of {threshold:.0%} {when}.")
    if speeds := [speed for _, speed in run.history(_SPEED)]:
        sentences.append(f"The worker trained on {min(speeds):.4g} to {max(speeds):.4g} samples per second.")
    return " ".join(sentences)


def svg(run: Run, threshold: float | None) -> bytes:
    """Draw the curves as an SVG document.

    Raises:
        MissingMatplotlibError: matplotlib is not installed.
    """
    heights = [*([_HIGH] if _has_accuracy(run) else []), *([_LOW] if run.history(_SPEED) else [])]

    def paint(panels: list[Any]) -> None:
        if _has_accuracy(run):
            _draw_accuracy(panels[0], run, threshold)
        if run.history(_SPEED):
            _draw_series(panels[-1], run.history(_SPEED), None, _SPEED_COLOUR, 1.4)
            panels[-1].set_ylabel("samples/s", color=GREY)
            panels[-1].set_ylim(bottom=0)
        panels[-1].set_xlabel("epochs trained", color=GREY)

    return drawn(run.uid, heights, paint)


def _has_accuracy(run: Run) -> bool:
    return any(run.history(name) or run.diverged(name) for name in (_VALIDATION, _TRAIN))


def _epochs(epochs: tuple[int, ...]) -> str:
    """Format epochs from the first to the last: `epoch 4`, `epochs 4 to 7`."""
    return f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {epochs[0]} to {epochs[-1]}"


def _draw_accuracy(axes: Any, run: Run, threshold: float | None) -> None:
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415 - optional; `drawn` has found it

    for name, words, colour, width in _SERIES:
        _draw_series(axes, _with_gaps(run, name), words, colour, width)
    if lost := sorted({epoch for name, *_ in _SERIES for epoch in run.diverged(name)}):
        axes.plot(lost, [0.02] * len(lost), **_LOST, transform=axes.get_xaxis_transform())
    if threshold is not None:
        label = f"threshold {threshold:.0%}"
        axes.axhline(threshold, label=label, color=_LIMIT, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1)
    axes.set_ylabel("accuracy", color=GREY)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
    axes.legend(loc="lower right", frameon=False)


def _with_gaps(run: Run, name: str) -> Points:
    """Return a figure's points, NaN where it diverged: matplotlib breaks the line there."""
    return tuple(sorted([*run.history(name), *((epoch, math.nan) for epoch in run.diverged(name))]))


def _draw_series(
    axes: Any, points: tuple[tuple[int, float], ...], words: str | None, colour: str, width: float
) -> None:
    if not points:
        return
    epochs, values = zip(*points, strict=True)
    axes.plot(epochs, values, color=colour, linewidth=width, marker="o", markersize=width + 1.5, label=words)
