"""Tuning picture: the time of each trial, the best so far, and the untuned time."""

from itertools import accumulate

from mxnet_operator.report import chart
from mxnet_operator.report.chart import COLOURS, Chart, Series
from mxnet_operator.report.run import Tuning


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


def html(tuning: Tuning) -> str:
    numbers = range(1, len(tuning.trials_ms) + 1)
    measured = tuple(
        Series(
            server,
            tuple(
                (number, ms)
                for number, ms, on in zip(numbers, tuning.trials_ms, tuning.trials_on, strict=False)
                if on == position
            ),
            "dots",
            1 + position % (COLOURS - 1),
        )
        for position, server in enumerate(tuning.servers)
    )
    best = Series("best so far", tuple(zip(numbers, accumulate(tuning.trials_ms, min), strict=True)), "step")
    return chart.html(
        Chart(
            title="milliseconds per run",
            series=(best, *measured),
            across="trial",
            description=description(tuning),
            limit=("untuned", tuning.untuned_ms),
            logarithmic=True,
        )
    )
