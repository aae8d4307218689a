"""Time spans: formatting for people, as in `kubectl get`, and arithmetic that never overflows."""

from datetime import UTC, datetime, timedelta
from typing import Final

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC, microsecond=0)


def after(moment: datetime, seconds: float) -> datetime:
    """Return the moment so many seconds later (earlier where negative), limited to the range of datetime.

    The API server takes any int64 for a duration: `activeDeadlineSeconds: 9223372036854775807` is "never".
    """
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST if seconds > 0 else _FIRST


def short(seconds: float) -> str:
    """Return a duration as kubectl shows it, to two parts: `7s`, `3m7s`, `2h3m`, `3d4h`."""
    whole = max(0, int(seconds))
    parts: list[tuple[int, str]] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, whole = divmod(whole, size)
        if count or parts or unit == "s":
            parts.append((count, unit))
    return "".join(f"{count}{unit}" for position, (count, unit) in enumerate(parts[:2]) if count or not position)
