"""Tuning picture: the time of each trial, the best so far, and the untuned time."""

from itertools import accumulate
from typing import Any, Final

from mxnet_operator.report.drawing import GREY, drawn
from mxnet_operator.report.run import Run, Tuning

_SERVERS: Final = ("#1b7f5c", "#7b4fa3", "#8a6d1f", "#5b6770")
_BEST: Final = "#0b5cad"
_UNTUNED: Final = "#b3261e"
_HEIGHT: Final = 3.9
"""Inches."""


def description(tuning: Tuning) -> str:
    """Describe the picture in words, as alternative text."""
    error = "" if tuning.error is None else f" The result differs from numpy's by at most {tuning.error:.1g} of it."
    return (
        f"One run takes {milliseconds(tuning.untuned_ms)} before and {milliseconds(tuning.tuned_ms)} after the tuning: "
        f"it is {tuning.gain:.1f} times as fast. {len(tuning.trials_ms)} trials: {shares(tuning)}.{error}"
    )


def shares(tuning: Tuning) -> str:
    """Format the number of trials per server: `8 on tunerserver-0, 8 on tunerserver-1`."""
    return ", ".join(f"{count} on {server}" for server, count in tuning.servers.items())


def milliseconds(value: float) -> str:
    """Format milliseconds: `1.33 ms`, `0.126 ms`."""
    return f"{value:.3g} ms"


def svg(run: Run, tuning: Tuning) -> bytes:
    """Draw the trials as an SVG document.

    Raises:
        MissingMatplotlibError: matplotlib is not installed.
    """
    return drawn(run.uid, [_HEIGHT], lambda panels: _draw(panels[0], tuning))


def _draw(axes: Any, tuning: Tuning) -> None:
    numbers = range(1, len(tuning.trials_ms) + 1)
    for position, server in enumerate(tuning.servers):
        own = [
            (number, ms)
            for number, ms, on in zip(numbers, tuning.trials_ms, tuning.trials_on, strict=False)
            if on == position
        ]
        axes.scatter(
            [number for number, _ in own],
            [ms for _, ms in own],
            color=_SERVERS[position % len(_SERVERS)],
            marker="osD^"[position % 4],
            label=server,
            zorder=3,
        )
    best = list(accumulate(tuning.trials_ms, min))
    axes.step(numbers, best, where="post", color=_BEST, linewidth=2.4, label="best so far", zorder=2)
    axes.axhline(tuning.untuned_ms, color=_UNTUNED, linewidth=1.2, linestyle=(0, (5, 3)), label="untuned", zorder=1)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axes.tick_params(axis="y", which="minor", colors=GREY)
    axes.set_xlabel("trial", color=GREY)
    axes.set_ylabel("milliseconds per run", color=GREY)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(tuning.servers) + 2, frameon=False)
