"""Serialised form of a trigger: the arguments that differ from their defaults."""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from mxnet_provider.cluster import ClusterConnection


def serialized(trigger: Any, init: Callable[..., None]) -> tuple[str, dict[str, Any]]:
    """Return a trigger's class, and its arguments that differ from the defaults of its constructor `init`.

    Each argument is an attribute of the trigger, or a field of its `ref`. A triggerer of an earlier release lacks
    arguments that came later, and makes no trigger of one that is named. So what is at its default is left out; and a
    default never changes, since each release reads its own into the gap.
    """
    held = vars(trigger) | msgspec.structs.asdict(trigger.ref) | ClusterConnection.of(trigger).arguments()
    parameters = [each for each in inspect.signature(init).parameters.values() if each.name != "self"]
    arguments = {each.name: held[each.name] for each in parameters if held[each.name] != _default(each)}
    return f"{type(trigger).__module__}.{type(trigger).__name__}", arguments


def _default(parameter: inspect.Parameter) -> Any:
    """Return a parameter's default as the trigger keeps it, and JSON has it."""
    return list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
