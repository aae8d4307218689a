"""Conditions of resource templates as Argo takes them, checked before a workflow is submitted.

Argo parses a condition only after it has made the object: one that it can't read leaves an orphan behind, and its own
lint says nothing (`docs/facts/argo.md`, conditions).
"""

import re
from typing import Final

from mxnet_operator.api.conditions import FAILED

OVER: Final = "status.state in (Succeeded,Failed)"
"""What a step waits for; its outputs then tell one from the other."""
HAS_FAILED: Final = f"status.state == {FAILED}"
"""What ends a step that waits for something else."""
_EXAMPLE: Final = "status.state == Running"

_SEGMENT = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_REQUIREMENT = re.compile(
    rf"\s*(?:!\s*{_SEGMENT}|(?P<field>{_SEGMENT})(?:\s*(?P<compares>==|=|!=)\s*(?P<value>{_VALUE})|\s*[<>]\s*\d+"
    rf"|\s+(?P<among>in|notin)\s*\(\s*(?P<values>{_VALUE}(?:\s*,\s*{_VALUE})*)\s*\))?)\s*"
)
_OF_EVERY_END: Final = ("status.state", "status.completionTime")
"""Fields that every job has that is over."""


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


def holds_for_failed(condition: str) -> bool:
    """Whether a condition that Argo can read holds for every job that has Failed."""
    found = _REQUIREMENT.fullmatch(condition)
    if found is None or found["field"] not in _OF_EVERY_END:
        return False
    if found["compares"] is None and found["among"] is None:
        return condition.strip() == found["field"]
    if found["field"] != "status.state":
        return False
    values = [found["value"]] if found["compares"] else re.split(r"\s*,\s*", found["values"])
    return (FAILED in values) == ((found["compares"] or found["among"]) in ("==", "=", "in"))


__all__ = ["HAS_FAILED", "OVER", "check_condition", "holds_for_failed"]
