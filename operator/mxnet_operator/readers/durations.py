"""Durations: as users write them, in Go's notation, as kubectl shows them, and in arithmetic that never overflows."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "ns": 1e-9}
_NUMBER: Final = r"(?:\d+(?:\.\d*)?|\.\d+)"
_PART: Final = re.compile(rf"({_NUMBER})(h|ms|us|\u00b5s|ns|m|s)", re.ASCII)
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_PLAIN: Final = re.compile(_NUMBER, re.ASCII)
EXAMPLES: Final = "90s, 1.5h, 500ms or 1h30m"
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC, microsecond=0)


def seconds_of(text: str, *, plain: bool = True) -> float:
    """Return the seconds of `2h`, `1h30m` or `500ms`; a number alone is seconds where `plain`, which Go itself rejects.

    Raises:
        ValueError: it is no duration, or a negative one.
    """
    if plain and _PLAIN.fullmatch(text):
        return float(text)
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is no duration: write {EXAMPLES}")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def after(moment: datetime, seconds: float) -> datetime:
    """Return the moment so many seconds later (earlier where negative), limited to the range of datetime.

    The API server takes any int64 for a duration: `activeDeadlineSeconds: 9223372036854775807` is "never".
    """
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST if seconds > 0 else _FIRST


def seconds_between(started: str | None, ended: str | None) -> float | None:
    """Return the seconds between two timestamps of the API; None where one is missing."""
    if not started or not ended:
        return None
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(started)).total_seconds()


def short(seconds: float) -> str:
    """Return a duration as kubectl shows it, to two parts: `7s`, `3m7s`, `2h3m`, `3d4h`."""
    whole = max(0, int(seconds))
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, size)
        if count or parts or unit == "s":
            parts.append((count, unit))
    return "".join(f"{count}{unit}" for position, (count, unit) in enumerate(parts[:2]) if count or not position)
