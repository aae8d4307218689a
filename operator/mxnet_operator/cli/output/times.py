"""Durations and times: parsing and formatting for the command line."""

from datetime import UTC, datetime
from typing import Any

import typer

from mxnet_operator.readers.durations import seconds_of, short


def duration(text: str | float) -> float:
    """Parse an option such as `90`, `90s`, `10m`, `2h` or `1h30m` into seconds; typer passes its default, too."""
    try:
        return seconds_of(str(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def since(time: str | datetime | None, now: datetime | None = None) -> str:
    """Format the age of a timestamp of the API, as `short` does; empty where there is none."""
    then = time if isinstance(time, datetime) else moment(time)
    return "" if then is None else short(((now or datetime.now(UTC)) - then).total_seconds())


def job_duration(job: dict[str, Any], now: datetime | None = None) -> str:
    """Format how long a job has run, up to its completion; empty before its start."""
    status = job.get("status") or {}
    return since(status.get("startTime"), moment(status.get("completionTime")) or now)
