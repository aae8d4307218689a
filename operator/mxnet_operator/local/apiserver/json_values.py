"""Operations on JSON values: remove nulls, fill in a field, look up a path."""

from typing import Any

Object = dict[str, Any]


def without_nulls(value: Any) -> Any:
    """Copy a JSON value without null fields, since the built-in types take null for absent."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value


def fill(obj: Object, field: str, value: Any) -> None:
    """Set a field that is absent, in place; to Go's types an empty text is."""
    if obj.get(field, "") == "":
        obj[field] = value


def at(value: Any, *path: str | int, default: Any = None) -> Any:
    """Return the value at a path of keys, or `default` where any step is missing or null."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return default
    return default if value is None else value
