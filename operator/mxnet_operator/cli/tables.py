"""Columns of text on stdout: as wide as their cells, never cut, one line per row."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.text import Text

from mxnet_operator.api.printable import printable_cell
from mxnet_operator.cli.terminal import data_console

NOTHING: Final = "-"
"""A cell without a value: programs that split at blanks must find it."""

BLANK: Final = " "
"""A cell in a line that goes on with the one above."""

STYLES: Final = {
    "Running": "cyan",
    "Restarting": "yellow",
    "Suspended": "yellow",
    "Succeeded": "green",
    "Completed": "green",
    "Failed": "red",
    "Error": "red",
}
"""The colours of states, of jobs and of replicas."""


class Columns:
    """A heading and rows that line up with it, and with later rows as far as they fit."""

    def __init__(self, heading: Sequence[str], rows: Iterable[Sequence[str]] = (), *, indent: str = "") -> None:
        """As wide as these rows ask for."""
        self.heading = heading
        self._indent = indent
        columns = zip(heading, *rows, strict=True)
        self._widths = [max(len(printable_cell(cell)) for cell in column) for column in columns]

    def write(self, rows: Iterable[Sequence[str]], *, heading: bool = True) -> None:
        """Write rows, after the heading where it is asked for."""
        console = data_console()
        if heading:
            console.print(self._line(self.heading, style="bold"))
        for row in rows:
            console.print(self._line(row))

    def _line(self, cells: Sequence[str], style: str = "") -> Text:
        line = Text(self._indent, style=style)
        for cell, width in zip(cells, self._widths, strict=True):
            line.append(f"{printable_cell(cell) or NOTHING:<{width}}", style=STYLES.get(cell, "")).append("   ")
        line.rstrip()
        return line


def write_table(heading: Sequence[str], rows: Sequence[Sequence[str]], *, indent: str = "") -> None:
    """A whole table at once."""
    Columns(heading, rows, indent=indent).write(rows)
