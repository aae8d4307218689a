"""Types of parameters in the words of the references: what a caller passes, without None and placeholders."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Literal, get_args, get_origin

from mxnet_operator.description import Placeholder

_NAMES: Final[dict[Any, str]] = {
    Any: "dict",
    Mapping: "dict",
    Sequence: "list",
    Collection: "list",
    type: "class",
    Callable: "function",
}


def type_name(annotation: Any) -> str:
    """Name a type: allowed values for a Literal, `seconds` for a number beside a timedelta."""
    if annotation is inspect.Parameter.empty:
        return ""
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation) if value is not None)
    parts = get_args(annotation) if get_origin(annotation) not in _NAMES else ()
    if parts:
        kept = [each for each in parts if each not in (type(None), Placeholder)]
        if any(get_origin(each) is Literal for each in kept):
            kept = [each for each in kept if each is not str]
        if timedelta in kept:
            return "seconds, `timedelta`"
        return ", ".join(dict.fromkeys(type_name(each) for each in kept))
    kind = get_origin(annotation) or annotation
    return f"`{_NAMES.get(kind) or getattr(kind, '__name__', kind)}`"
