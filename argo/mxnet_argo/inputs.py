"""The parameters among what Hera takes as inputs or arguments: one or many, in many forms."""

from collections.abc import Mapping, Sequence
from typing import Any

from hera.workflows import Parameter
from hera.workflows.models import Arguments, Inputs, Outputs
from hera.workflows.models import Parameter as ModelParameter


def parameters(given: Any) -> dict[str, Parameter]:
    """Parameters by name, however Hera takes them: one or a list of parameters, mappings of values by name.

    A value that one has without a default is its default, as Argo takes it.
    """
    found: dict[str, Parameter] = {}
    for each in as_list(given):
        if isinstance(each, Mapping):
            found.update({name: _with_default(name, value) for name, value in each.items()})
        elif isinstance(each, Parameter | ModelParameter):
            default = each.default if each.default is not None else each.value
            found[str(each.name)] = _with_default(str(each.name), default, each.description)
    return found


def _with_default(name: str, value: Any, description: str | None = None) -> Parameter:
    if value is None:
        return Parameter(name=name, description=description)
    return Parameter(name=name, description=description, default=value)


def as_input(parameter: Parameter) -> Parameter:
    """Copy an input for another template: Hera changes the ones that it builds from."""
    return Parameter(name=parameter.name, description=parameter.description, **_as("default", parameter))


def as_argument(parameter: Parameter) -> Parameter:
    """Return the argument of a workflow for an input of its entrypoint, with its default as its value."""
    return Parameter(name=parameter.name, description=parameter.description, **_as("value", parameter))


def _as(field: str, parameter: Parameter) -> dict[str, Any]:
    """Keep what is there already, since None would become the text `null`."""
    return {field: parameter.default} if isinstance(parameter.default, str) else {}


def as_list(given: Any) -> list[Any]:
    """One, many or none as a list; of a model of Argo's, its parameters and artifacts."""
    if given is None:
        return []
    if isinstance(given, Inputs | Outputs | Arguments):
        return [*(given.parameters or ()), *(given.artifacts or ())]
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


__all__ = ["as_argument", "as_input", "as_list", "parameters"]
