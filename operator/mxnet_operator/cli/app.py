"""Shared behaviour of the command lines: their Typer settings, help options and help texts."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.output.terminal import drop_output

_LINE_BREAK = re.compile(r"(?<!\n)\n(?!\n)")


class _Command(TyperCommand):
    """Typer command whose help is wrapped at the terminal's width, and not where its docstring's lines end."""

    def __init__(self, *args: Any, help: str | None = None, **settings: Any) -> None:  # noqa: A002 - click's name
        super().__init__(*args, help=help and _LINE_BREAK.sub(" ", inspect.cleandoc(help)), **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; end it quietly when nobody reads its output any more, as in `mxjob get | head -1`."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(Exit.CLOSED_PIPE) from None


class App(typer.Typer):
    """Command line, or a group of commands within one; takes the settings of `typer.Typer`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            no_args_is_help=True,
            rich_markup_mode="rich",
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"]},
            **settings,
        )

    def command(self, *args: Any, **settings: Any) -> Callable[[Any], Any]:
        """Register a command, as `typer.Typer.command` does."""
        return super().command(*args, cls=_Command, **settings)
