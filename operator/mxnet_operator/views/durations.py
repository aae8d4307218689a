"""Durations as users write them, in Go's notation, as Kubernetes and Argo take them: one parser for all commands."""

import re
from typing import Final

_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "ns": 1e-9}
_NUMBER: Final = r"(?:\d+(?:\.\d*)?|\.\d+)"
_PART: Final = re.compile(rf"({_NUMBER})(h|ms|us|\u00b5s|ns|m|s)", re.ASCII)
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_PLAIN: Final = re.compile(_NUMBER, re.ASCII)
EXAMPLES: Final = "90s, 1.5h, 500ms or 1h30m"


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
