"""Values that every JSON database can store, for whatever is passed to Airflow.

PostgreSQL's `json` and `jsonb` reject NaN, infinities, NUL and lone surrogates; Airflow's parts exchange integers of 64
bits at most, and `jsonb` returns 1e20 as an integer; Airflow's serialization keeps keys such as `__classname__` to
itself. One value that is rejected ends a task, and one in a trigger's event ends Airflow's triggerer. A replica can
write any of them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

LONGEST_TEXT: Final = 32 * 1024
"""Maximum characters of one text; Kubernetes itself keeps a condition's message below that."""

LONGEST_JSON: Final = 256 * 1024
"""Maximum characters of a result that is read as JSON: as long as the longest that a log carries."""

DEEPEST: Final = 32
"""Maximum levels of lists and mappings within each other."""

TOO_DEEP: Final = "(nested too deeply)"

_REFUSED: Final = re.compile("[\x00\ud800-\udfff]")
_TOO_LARGE: Final = 2**63


def storable(value: Any, depth: int = DEEPEST) -> Any:
    """Return the value as JSON that any database stores; pure and idempotent.

    Numbers that aren't finite or need more than 64 bits become None, NUL and lone surrogates U+FFFD, keys texts. Texts
    and nesting are cut at a bound. Anything else than JSON becomes its text.
    """
    match value:
        case None | bool():
            return value
        case str():
            return storable_text(value)
        case int() | float():
            return value if -_TOO_LARGE < value < _TOO_LARGE else None
        case Mapping():
            if not depth:
                return TOO_DEEP
            return {storable_key(key): storable(each, depth - 1) for key, each in value.items()}
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [storable(each, depth - 1) for each in value] if depth else TOO_DEEP
    return storable_text(str(value))


def storable_text(text: str) -> str:
    """Return the text without what databases reject, cut at LONGEST_TEXT."""
    cut, left_out = text[:LONGEST_TEXT], len(text) - LONGEST_TEXT
    kept = _REFUSED.sub("\N{REPLACEMENT CHARACTER}", cut)
    if left_out <= 0:
        return kept
    # What was cut once says so, and isn't cut again.
    note = f"... ({left_out} more characters)"
    return kept[: -len(note)] + note


def storable_key(key: Any) -> str:
    """Return the key as text; of two leading underscores one is kept, since Airflow reserves such keys."""
    text = storable_text(key if isinstance(key, str) else str(key))
    return f"_{text.lstrip('_')}" if text.startswith("__") else text


def json_or_text(text: str) -> Any:
    """Return the JSON value of a script's message, else the text itself, also where that is nested too deeply.

    NaN and Infinity, which Python's `json.dumps` writes, are read as numbers: `storable` makes None of them.
    """
    if len(text) > LONGEST_JSON:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if _levels(value) <= DEEPEST else text


def _levels(value: Any) -> int:
    """Return how many lists and mappings are within each other."""
    levels, inner = 0, [value]
    while inner := [each for each in inner if isinstance(each, list | dict)]:
        levels += 1
        inner = [x for each in inner for x in (each.values() if isinstance(each, dict) else each)]
    return levels
