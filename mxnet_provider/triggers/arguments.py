"""Serialised form of a trigger: the arguments that differ from their defaults."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def differing(init: Callable[..., None], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that differ from the defaults of a trigger's constructor.

    A triggerer of an earlier release lacks arguments that came later, and makes no trigger of one that is named. So
    what is at its default is left out; and a default never changes, since each release reads its own into the gap.
    """
    parameters = inspect.signature(init).parameters
    return {name: value for name, value in given.items() if value != _default(parameters[name])}


def _default(parameter: inspect.Parameter) -> Any:
    """Return a parameter's default as the trigger keeps it, and JSON has it."""
    return list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
