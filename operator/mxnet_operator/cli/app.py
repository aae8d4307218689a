"""What our command lines have in common: how they look, how they ask for help, and where its lines end."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.terminal import drop_output

_LINE_BREAK = re.compile(r"(?<!\n)\n(?!\n)")


class _Command(TyperCommand):
    """A command whose help is wrapped at the terminal's width, and not where its docstring's lines end."""

    def __init__(self, *args: Any, help: str | None = None, **settings: Any) -> None:  # noqa: A002 - click's name
        super().__init__(*args, help=help and _LINE_BREAK.sub(" ", inspect.cleandoc(help)), **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a reader that went away, as in `mxjob get | head -1`, ends it quietly."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(Exit.CLOSED_PIPE) from None


class App(typer.Typer):
    """A command line, or a group of commands within one; takes what `typer.Typer` does."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            no_args_is_help=True,
            rich_markup_mode="rich",
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"]},
            **settings,
        )

    def command(self, *args: Any, **settings: Any) -> Callable[[Any], Any]:
        """As typer's."""
        return super().command(*args, cls=_Command, **settings)
