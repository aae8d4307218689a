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
            found.update({name: _copy(Parameter(name=name), default=value) for name, value in each.items()})
        elif isinstance(each, Parameter | ModelParameter):
            found[str(each.name)] = _copy(each, default=each.default if each.default is not None else each.value)
    return found


def as_input(parameter: Parameter) -> Parameter:
    """Copy an input for another template: Hera changes the ones that it builds from."""
    return _copy(parameter, default=parameter.default)


def as_argument(parameter: Parameter) -> Parameter:
    """Return the argument of a workflow for an input of its entrypoint, with its default as its value."""
    return _copy(parameter, value=parameter.default)


def _copy(parameter: Parameter | ModelParameter, **given: Any) -> Parameter:
    """Return a parameter with a default or value that it is given, unless that is None, which would become `null`."""
    fields = {field: getattr(parameter, field) for field in ("description", "enum", "value_from")}
    said = {field: each for field, each in given.items() if each is not None}
    if "value" in said:
        del fields["value_from"]  # Argo takes one of them
    return Parameter(name=str(parameter.name), **fields, **said)


def as_list(given: Any) -> list[Any]:
    """One, many or none as a list; of a model of Argo's, its parameters and artifacts."""
    if given is None:
        return []
    if isinstance(given, Inputs | Outputs | Arguments):
        return [*(given.parameters or ()), *(given.artifacts or ())]
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
