"""Spans of time as Argo takes them: Go's notation."""

import math
import re
from typing import Final

_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def seconds(timeout: str | None) -> int | None:
    """The seconds of `2h`, `1h30m` or `90s`, rounded up; None where there is no limit, or a tag of Argo's says it.

    Raises:
        ValueError: Argo can't read it, which it finds out only when the workflow is submitted.
    """
    if timeout is None or "{{" in timeout:
        return None
    parts = _PART.findall(timeout)
    if not parts or "".join(number + unit for number, unit in parts) != timeout:
        raise ValueError(f"timeout: Argo can't read {timeout!r}: write 90s, 30m or 1h30m")
    return math.ceil(sum(float(number) * _UNITS[unit] for number, unit in parts))


__all__ = ["seconds"]
