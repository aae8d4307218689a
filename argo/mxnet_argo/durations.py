"""Spans of time as Argo takes them: Go's notation."""

import math

from mxnet_operator.readers.durations import seconds_of


def seconds(timeout: str | None) -> int | None:
    """Return the seconds of `2h`, `1h30m` or `90s`, rounded up; None without a limit, or where a tag of Argo's says it.

    Raises:
        ValueError: Argo can't read it, which it finds out only when the workflow is submitted.
    """
    if timeout is None or "{{" in timeout:
        return None
    try:
        return math.ceil(seconds_of(timeout, plain=False))
    except ValueError:
        raise ValueError(f"timeout: Argo can't read {timeout!r}: write 90s, 30m or 1h30m") from None


__all__ = ["seconds"]
