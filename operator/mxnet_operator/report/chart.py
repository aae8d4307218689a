"""Charts as inline SVG: one for each unit. Colours are classes of the page's style, so they follow light and dark."""

import math
from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Final, Literal

import msgspec

Point = tuple[float, float]

COLOURS: Final = 6
"""Number of colours of lines: the classes c0 to c5 of the style."""
_WIDTH: Final = 560
_HEIGHT: Final = 250
_LEFT: Final = 58
"""Least room for the labels of the vertical axis."""
_CHARACTER: Final = 11
"""Width of a character on a narrow screen."""
_RIGHT: Final = 14
_TOP: Final = 12
_BOTTOM: Final = 40
_MOST_MARKS: Final = 60
"""Points of a line up to which each has a mark."""
_STEPS: Final = (1, 2, 2.5, 5, 10)


class Series(msgspec.Struct, frozen=True):
    """One line, dots, or steps; a value that is not a finite number is a gap."""

    name: str
    points: tuple[Point, ...]
    kind: Literal["line", "dots", "step"] = "line"
    colour: int = 0


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Chart of figures of one unit."""

    title: str
    series: tuple[Series, ...]
    across: str
    """Name of the horizontal axis."""
    description: str = ""
    """The chart in words, for those who can't see it."""
    limit: tuple[str, float] | None = None
    """Name and value of a horizontal line."""
    percent: bool = False
    logarithmic: bool = False
    from_zero: bool = False


def html(chart: Chart) -> str:
    return (
        f'<figure class="chart"><figcaption><h3>{escape(chart.title)}</h3>{_legend(chart)}</figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(chart.description or chart.title)}">'
        f"{_drawing(chart)}</svg></figure>"
    )


def _legend(chart: Chart) -> str:
    lost = any(not math.isfinite(y) for series in chart.series for _, y in series.points)
    entries = [(f"c{series.colour} {series.kind}", series.name) for series in chart.series]
    entries += [("limit", chart.limit[0])] if chart.limit else []
    entries += [("lost", "not a number")] if lost else []
    items = "".join(f'<li><span class="key {kind}"></span>{escape(name)}</li>' for kind, name in entries)
    return f'<ul class="legend">{items}</ul>'


def _drawing(chart: Chart) -> str:
    points = [point for series in chart.series for point in series.points]
    finite = [y for _, y in points if math.isfinite(y)]
    values = [*finite, *([chart.limit[1]] if chart.limit else [])] or [0.0, 1.0]
    if chart.logarithmic:
        values = [value for value in values if value > 0]
    low, high, ticks = _logarithmic_axis(values) if chart.logarithmic else _axis(values, from_zero=chart.from_zero)
    first, last = min(x for x, _ in points), max(x for x, _ in points)

    show = percent if chart.percent and max(values) <= 1 else plain
    left = max(_LEFT, 14 + _CHARACTER * max(len(show(tick)) for tick in ticks))

    def x_of(x: float) -> float:
        share = 0.5 if first == last else (x - first) / (last - first)
        return left + share * (_WIDTH - left - _RIGHT)

    def y_of(y: float) -> float:
        part = math.log(y / low) / math.log(high / low) if chart.logarithmic else (y - low) / (high - low)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)

    return "".join(
        (
            *_grid(ticks, y_of, show, left),
            *_across(first, last, x_of, chart.across, left),
            *([_horizontal("limit", y_of(chart.limit[1]), left)] if chart.limit else []),
            *(_line(series, x_of, y_of, show, chart.across) for series in chart.series),
            *(
                f'<path class="lost" d="M{x_of(x) - 4:.1f},{_HEIGHT - _BOTTOM - 12}l8,8m-8,0l8,-8"/>'
                for x in sorted({x for x, y in points if not math.isfinite(y)})
            ),
        )
    )


def _grid(
    ticks: Iterable[float], y_of: Callable[[float], float], show: Callable[[float], str], left: float
) -> Iterator[str]:
    for tick in ticks:
        y = y_of(tick)
        yield _horizontal("grid", y, left)
        yield f'<text class="quiet" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{show(tick)}</text>'


def _across(first: float, last: float, x_of: Callable[[float], float], title: str, left: float) -> Iterator[str]:
    step = max(1, math.ceil(_step((last - first) / 7))) if last > first else 1
    tick = math.ceil(first / step) * step
    while tick <= last:
        yield f'<text class="quiet" x="{x_of(tick):.1f}" y="{_HEIGHT - 22}" text-anchor="middle">{tick:g}</text>'
        tick += step
    middle = (left + _WIDTH - _RIGHT) / 2
    yield f'<text class="quiet" x="{middle}" y="{_HEIGHT - 4}" text-anchor="middle">{escape(title)}</text>'


def _horizontal(kind: str, y: float, left: float) -> str:
    return f'<line class="{kind}" x1="{left}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _line(
    series: Series,
    x_of: Callable[[float], float],
    y_of: Callable[[float], float],
    show: Callable[[float], str],
    across: str,
) -> str:
    parts, runs = [], [[]]  # type: tuple[list[str], list[list[Point]]]
    for x, y in series.points:
        if math.isfinite(y):
            runs[-1].append((x_of(x), y_of(y)))
        elif runs[-1]:
            runs.append([])
    if series.kind != "dots":
        for run in runs:
            way = _steps(run) if series.kind == "step" else run
            if len(way) > 1:
                drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in way)
                parts.append(f'<polyline class="line c{series.colour}" points="{drawn}"/>')
    if series.kind == "dots" or (series.kind == "line" and len(series.points) <= _MOST_MARKS):
        parts += (
            f'<circle class="mark c{series.colour}" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3">'
            f"<title>{escape(f'{series.name}, {across} {x:g}: {show(y)}')}</title></circle>"
            for x, y in series.points
            if math.isfinite(y)
        )
    return "".join(parts)


def _steps(run: list[Point]) -> list[Point]:
    return [
        point for (x, y), (after, _) in zip(run, [*run[1:], *run[-1:]], strict=True) for point in ((x, y), (after, y))
    ]


def _axis(values: list[float], *, from_zero: bool) -> tuple[float, float, list[float]]:
    low, high = (min(0.0, *values) if from_zero else min(values)), max(values)
    if low == high:
        low, high = low - (abs(low) / 2 or 0.5), high + (abs(high) / 2 or 0.5)
    step = _step((high - low) / 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return first * step, last * step, [number * step for number in range(first, last + 1)]


def _logarithmic_axis(values: list[float]) -> tuple[float, float, list[float]]:
    low, high = min(values) / 1.2, max(values) * 1.2
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return low, high, [tick for d in decades for n in (1, 2, 5) if low <= (tick := n * 10.0**d) <= high]


def _step(raw: float) -> float:
    """Return the next round number: 1, 2, 2.5 or 5 and a power of ten."""
    magnitude = 10.0 ** math.floor(math.log10(raw))
    return next((step * magnitude for step in _STEPS if step * magnitude >= raw * (1 - 1e-9)), 10 * magnitude)


def plain(value: float) -> str:
    """Format a figure with four digits: `0.0231`, `1998`, `115.9k`, `2.5M`."""
    for least, size, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if least <= abs(value) < 1e12:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"


def percent(value: float) -> str:
    """Format a share of 1 in percent, with four digits; a script's own percentages as they are."""
    return plain(value) if value > 1 else f"{value * 100:.4g}%"
