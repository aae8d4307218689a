"""Spans of time as people write and read them."""

from datetime import UTC, datetime
from typing import Any

from mxnet_operator.api.spans import short
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.views.durations import EXAMPLES, seconds_of


def duration(text: str) -> float:
    """Seconds in `90`, `90s`, `10m`, `2h` or `1h30m`."""
    try:
        return seconds_of(text)
    except ValueError:
        raise CommandError(f"{text!r} is no duration", hint=f"such as {EXAMPLES}", code=Exit.USAGE) from None


def moment(text: str | None) -> datetime | None:
    """A time as the API writes it; None where there is none."""
    return datetime.fromisoformat(text) if text else None


def since(time: str | datetime | None, now: datetime | None = None) -> str:
    """How long ago a time of the API's was, as `short`; empty where there is none."""
    then = time if isinstance(time, datetime) else moment(time)
    return "" if then is None else short(((now or datetime.now(UTC)) - then).total_seconds())


def job_duration(job: dict[str, Any], now: datetime | None = None) -> str:
    """How long a job has run, to its end where it has one; empty before its start."""
    status = job.get("status") or {}
    return since(status.get("startTime"), moment(status.get("completionTime")) or now)
