"""Ranking of a sweep's trials by a number in what each reported: one rule for Argo's sweep and Airflow's."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypedDict, get_args

Direction = Literal["maximize", "minimize"]
"""Whether the best trial is the one with the highest number, or with the lowest."""

LONGEST_REASON: Final = 1000
"""Characters of the reason why a sweep has no best trial."""


class Row(TypedDict):
    """A trial that succeeded: its job, the number that it is compared by (None for none), and what it reported."""

    job: str
    value: float | None
    result: Any


def check_direction(direction: Any) -> None:
    """Reject what is no direction.

    Raises:
        ValueError: it is neither maximize nor minimize.
    """
    if direction not in get_args(Direction):
        raise ValueError(f"direction: {direction!r} is neither maximize nor minimize")


def number(result: Any, metric: str) -> float | None:
    """Return the number `metric` of a result; None where it has none, or one that is not finite."""
    found = result.get(metric) if isinstance(result, Mapping) else None
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return found if abs(found) <= sys.float_info.max else None


def ranked(results: Iterable[tuple[str, Any]], metric: str, direction: Direction) -> list[Row]:
    """Rank trials, `(job, result)` each: those without a number first, then the others up to the best.

    Of equals the first given is the better one. There is no best trial where the last has no number.
    """
    rows = [Row(job=job, value=number(result, metric), result=result) for job, result in results]
    without = [row for row in rows if row["value"] is None]
    numbered = [(row["value"], row) for row in reversed(rows) if row["value"] is not None]
    numbered.sort(key=lambda each: each[0], reverse=direction == "minimize")
    return [*without, *(row for _, row in numbered)]


def best(rows: list[Row]) -> Row | None:
    """Return the best of ranked trials; None where no trial has a number."""
    return rows[-1] if rows and rows[-1]["value"] is not None else None


def why_none_is_best(rows: Iterable[Row], metric: str, trials: int) -> str:
    """Say what the trials reported in place of a number, in `LONGEST_REASON` characters at most.

    Args:
        rows: The trials that succeeded, none of which has a number.
        metric: The number that was looked for.
        trials: How many trials there were, failed ones included.
    """
    said = [f"{row['job']}: {_json(row['result'])}" for row in rows]
    reported = f", and reported {'; '.join(said)}" if said else ""
    why = f"no trial reported a number {_json(metric)}: {len(said)} of {trials} succeeded{reported}"
    return why[:LONGEST_REASON]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
