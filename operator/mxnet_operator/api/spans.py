"""Spans of time: as people read them, in `kubectl get` and on our command line alike, and added to moments."""

from datetime import UTC, datetime, timedelta
from typing import Final

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC, microsecond=0)


def after(moment: datetime, seconds: float) -> datetime:
    """The moment so many seconds later (earlier where negative); the last (first) there is where that is past it.

    The API server takes any int64 for a duration: `activeDeadlineSeconds: 9223372036854775807` is "never".
    """
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST if seconds > 0 else _FIRST


def short(seconds: float) -> str:
    """`7s`, `3m7s`, `2h3m`, `3d4h`: as kubectl, to two parts."""
    whole = max(0, int(seconds))
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, size)
        if count or parts or unit == "s":
            parts.append((count, unit))
    return "".join(f"{count}{unit}" for position, (count, unit) in enumerate(parts[:2]) if count or not position)
