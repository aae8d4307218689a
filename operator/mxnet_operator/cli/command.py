"""Options of commands, and commands whose options are the fields of dataclasses."""

import asyncio
import dataclasses
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import typer

from mxnet_operator.cli.errors import Exit, leave
from mxnet_operator.cli.interrupts import unless_interrupted


def with_options(work: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command of `work` in which each field of a dataclass parameter is an option, in the parameter's place."""
    parameters = inspect.signature(work).parameters
    annotations = {name: each.annotation for name, each in parameters.items()}
    kinds: dict[str, Any] = {name: each for name, each in annotations.items() if dataclasses.is_dataclass(each)}
    options = {name: inspect.signature(kind).parameters for name, kind in kinds.items()}

    @functools.wraps(work)
    def command(**given: Any) -> Any:
        groups = {name: kind(**{each: given.pop(each) for each in options[name]}) for name, kind in kinds.items()}
        return work(**groups, **given)

    expanded = [each for name, own in parameters.items() for each in options.get(name, {name: own}).values()]
    keyword_only = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in expanded]
    command.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]  # typer reads it
    return command


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


def option(*flags: str, help: str, panel: str | None = None, **more: Any) -> Any:  # noqa: A002 - typer's word
    """Return an option whose help says what the default is, under a panel; the other arguments are typer's."""
    return typer.Option(*flags, help=help, rich_help_panel=panel, **{"show_default": False, **more})
