"""JSON merge patch that turns one document into another (RFC 7386)."""

from typing import Any


def merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the patch; removed keys are null, lists are replaced whole, and equal documents give `{}`."""
    patch: dict[str, Any] = dict.fromkeys((key for key in old if key not in new), None)
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch
