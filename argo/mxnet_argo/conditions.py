"""Conditions of resource templates as Argo takes them, checked before a workflow is submitted.

Argo parses a condition only after it has made the object: one that it can't read leaves an orphan behind, and its own
lint says nothing (`docs/facts/argo.md`, conditions).
"""

import re
from typing import Final

OVER: Final = "status.state in (Succeeded,Failed)"
"""What a step waits for; its outputs then tell one from the other."""
_EXAMPLE: Final = "status.state == Running"

_SEGMENT = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_REQUIREMENT = re.compile(
    rf"\s*(?:!\s*{_SEGMENT}|{_SEGMENT}(?:\s*(?:==|=|!=)\s*{_VALUE}|\s*[<>]\s*\d+"
    rf"|\s+(?:in|notin)\s*\(\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*\))?)\s*"
)


def check_condition(field: str, condition: str) -> None:
    """Reject what Argo would reject too late, or understand otherwise than it reads.

    Raises:
        ValueError: with what to write instead.
    """
    if not _REQUIREMENT.fullmatch(condition):
        raise ValueError(
            f"{field}: Argo can't read {condition!r}: write one requirement on a field, as {_EXAMPLE!r}, with ==, !=,"
            " in (A,B), notin (A,B), or < and > before a whole number; an item of a list, quotes, spaces in a value and"
            " >= can't be written. Of several requirements the failure condition takes any, so none is taken here"
        )


__all__ = ["OVER", "check_condition"]
