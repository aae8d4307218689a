"""Option of a command whose help says what the default is."""

from typing import Any

import typer


def option(*flags: str, help: str, panel: str | None = None, **more: Any) -> Any:  # noqa: A002 - typer's word
    """Return an option under a panel of the help; the other arguments are typer's."""
    return typer.Option(*flags, help=help, show_default=False, rich_help_panel=panel, **more)
