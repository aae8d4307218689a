"""The parameters among what Hera takes as inputs or arguments: one or many, in many forms."""

from collections.abc import Iterable, Sequence
from typing import Any

from hera.workflows import Parameter


def parameters(given: Any) -> dict[str, Parameter]:
    """Parameters by name; of Hera's other forms (mappings, artifacts) there are none here."""
    if given is None:
        return {}
    each = [given] if isinstance(given, Parameter) else given if isinstance(given, Iterable) else []
    return {str(one.name): one for one in each if isinstance(one, Parameter)}


def as_input(parameter: Parameter) -> Parameter:
    """The same input for another template: Hera changes those that it builds from."""
    return Parameter(name=parameter.name, description=parameter.description, **_as("default", parameter))


def as_argument(parameter: Parameter) -> Parameter:
    """The argument of a workflow for an input of its entrypoint, with its default as its value."""
    return Parameter(name=parameter.name, description=parameter.description, **_as("value", parameter))


def _as(field: str, parameter: Parameter) -> dict[str, Any]:
    """What is there already, since None would become the text `null`."""
    return {field: parameter.default} if isinstance(parameter.default, str) else {}


def as_list(given: Any) -> list[Any]:
    """One, many or none as a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


__all__ = ["as_argument", "as_input", "as_list", "parameters"]
