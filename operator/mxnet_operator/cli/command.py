"""Options of commands, as defaults of their parameters or as fields of dataclasses."""

import asyncio
import dataclasses
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer

from mxnet_operator.cli.errors import Exit, leave
from mxnet_operator.cli.interrupts import unless_interrupted


def with_options(work: Callable[..., Any], *, variables: str = "") -> Callable[..., Any]:
    """Make a command of `work` in which each field of a dataclass parameter is an option, in the parameter's place.

    With `variables`, each has an environment variable of its name after this prefix, unless it has another.
    """
    parameters = inspect.signature(work).parameters
    annotations = {name: each.annotation for name, each in parameters.items()}
    kinds: dict[str, Any] = {name: each for name, each in annotations.items() if dataclasses.is_dataclass(each)}
    fields = {name: dataclasses.fields(kind) for name, kind in kinds.items()}

    @functools.wraps(work)
    def command(**given: Any) -> Any:
        for name, own in fields.items():
            given[name] = kinds[name](**{each.name: given.pop(each.name) for each in own})
        return work(**given)

    expanded = []
    for name, own in parameters.items():
        of_group = [_parameter(each.name, each.type, each, variables) for each in fields.get(name, ())]
        expanded += of_group or [_parameter(name, own.annotation, own.default)]
    command.__signature__ = inspect.Signature(expanded)  # type: ignore[attr-defined]  # typer reads it
    return command


def _parameter(name: str, annotation: Any, default: Any, variables: str = "") -> inspect.Parameter:
    """Return a parameter as typer reads one; the `default` may be what `option` returned."""
    if isinstance(default, dataclasses.Field):
        described = default.metadata.get("option")
        if variables and described and not described.envvar:
            described.envvar = variables + name.upper()
        annotation, default = Annotated[annotation, described], default.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def asks_server(work: Callable[..., Coroutine[Any, Any, Exit]]) -> Callable[..., None]:
    """Make a command of `work`, whose first parameter is the Target: its options are the command's last ones.

    The first signal cancels the work.
    """

    @functools.wraps(work)
    def command(target: Any, **given: Any) -> None:
        leave(asyncio.run(unless_interrupted(work(target, **given))))

    target, *own = inspect.signature(work).parameters.values()
    last = target.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    command.__signature__ = inspect.Signature([*own, last])  # type: ignore[attr-defined]
    return with_options(command)


def option(*flags: str, help: str, default: Any = None, panel: str | None = None, **more: Any) -> Any:  # noqa: A002
    """Describe an option, as the default of a parameter of a command or of a dataclass's field.

    What it returns is a dataclass Field in both places; `with_options`, which each command is decorated with, takes
    the option for typer from it. The help says what the default is; `more` are arguments of `typer.Option`.
    """
    described = typer.Option(*flags, help=help, rich_help_panel=panel, **{"show_default": False, **more})
    return dataclasses.field(default=default, metadata={"option": described})
