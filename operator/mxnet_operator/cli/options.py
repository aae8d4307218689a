"""Options of commands: one whose help says what the default is, and `--version`."""

from collections.abc import Callable
from typing import Any

import typer

from mxnet_operator.cli.errors import Exit, leave
from mxnet_operator.cli.output.terminal import write_line


def option(*flags: str, help: str, panel: str | None = None, **more: Any) -> Any:  # noqa: A002 - typer's word
    """Return an option under a panel of the help; the other arguments are typer's."""
    return typer.Option(*flags, help=help, show_default=False, rich_help_panel=panel, **more)


def show_version(program: str) -> Callable[[bool], None]:
    """Make the option's callback, which prints the program's name and version and exits."""

    def show(asked: bool) -> None:
        if asked:
            import importlib.metadata  # noqa: PLC0415 - a tenth of what `mxjob --help` costs

            try:
                number = importlib.metadata.version("mxnet-operator")
            except importlib.metadata.PackageNotFoundError:
                number = "of a checkout that is not installed"
            write_line(f"{program} {number}")
            leave(Exit.OK)

    return show
