"""The training curve as a picture: accuracy over epochs, drawn by matplotlib as SVG."""

import io
from typing import Any, Final

from mxnet_operator.report.run import Run

_VALIDATION: Final = "validation_accuracy"
_TRAIN: Final = "train_accuracy"
_SERIES: Final = ((_TRAIN, "training", "#8a6d1f", 1.4), (_VALIDATION, "validation", "#0b5cad", 2.4))
_INK: Final = "#1c2733"
_GREY: Final = "#5b6770"
_LIMIT: Final = "#b3261e"


class MissingMatplotlibError(ImportError):
    """matplotlib, which draws the curve, is not installed."""

    def __init__(self) -> None:
        super().__init__("A report's curve is drawn by matplotlib: pip install 'mxnet-operator[report]'")


def has_curve(run: Run) -> bool:
    """Whether the script reported what a curve is drawn from."""
    return bool(run.history(_VALIDATION) or run.history(_TRAIN))


def description(run: Run, threshold: float | None) -> str:
    """The picture in words, for those who can't see it."""
    sentences = []
    for name, words in ((_VALIDATION, "Validation"), (_TRAIN, "Training")):
        if points := run.history(name):
            (first, start), (last, end) = points[0], points[-1]
            sentences.append(
                f"{words} accuracy goes from {start:.1%} after epoch {first} to {end:.1%} after epoch {last}."
            )
    points = run.history(_VALIDATION)
    if threshold is not None and points:
        reached = next((epoch for epoch, value in points if value >= threshold), None)
        when = "is never reached" if reached is None else f"is first reached after epoch {reached}"
        sentences.append(f"The threshold of {threshold:.0%} {when}.")
    return " ".join(sentences)


def svg(run: Run, threshold: float | None) -> bytes:
    """The curve as an SVG document.

    Raises:
        MissingMatplotlibError: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - optional, and half a second to import
        from matplotlib.figure import Figure  # noqa: PLC0415
        from matplotlib.ticker import MaxNLocator, PercentFormatter  # noqa: PLC0415
    except ImportError as e:
        raise MissingMatplotlibError from e

    with rc_context({"svg.hashsalt": run.uid, "font.size": 11, "text.color": _INK, "axes.edgecolor": _GREY}):
        figure = Figure(figsize=(8.6, 3.9), layout="constrained")
        axes = figure.subplots()
        for name, words, colour, width in _SERIES:
            _draw_series(axes, run.history(name), words, colour, width)
        if threshold is not None:
            label = f"threshold {threshold:.0%}"
            axes.axhline(threshold, label=label, color=_LIMIT, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1)
        axes.set_xlabel("epochs trained", color=_GREY)
        axes.set_ylabel("accuracy", color=_GREY)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.tick_params(colors=_GREY)
        axes.grid(axis="y", color="#e3e7ea", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.01)
        axes.legend(loc="lower right", frameon=False)
        picture = io.BytesIO()
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()


def _draw_series(axes: Any, points: tuple[tuple[int, float], ...], words: str, colour: str, width: float) -> None:
    if not points:
        return
    epochs, values = zip(*points, strict=True)
    axes.plot(epochs, values, color=colour, linewidth=width, marker="o", markersize=width + 1.5, label=words)
