"""Tables on stdout: columns as wide as their cells, never cut, one line per row."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.text import Text

from mxnet_operator.api.printable import printable_cell
from mxnet_operator.cli.output.terminal import data_console

NOTHING: Final = "-"
"""Text of a cell without a value, so that programs that split lines at blanks find every column."""

BLANK: Final = " "
"""Text of a cell in a line that continues the row above."""

STYLES: Final = {
    "Running": "cyan",
    "Restarting": "yellow",
    "Suspended": "yellow",
    "Succeeded": "green",
    "Completed": "green",
    "Failed": "red",
    "Error": "red",
}
"""Colours of the states of jobs and replicas."""


class Columns:
    """Table whose later rows line up with its heading and first rows, as far as they fit."""

    def __init__(self, heading: Sequence[str], rows: Iterable[Sequence[str]] = (), *, indent: str = "") -> None:
        """Compute the widths of the columns from the heading and these rows."""
        self.heading = heading
        self._indent = indent
        columns = zip(heading, *rows, strict=True)
        self._widths = [max(len(printable_cell(cell)) for cell in column) for column in columns]

    def write(self, rows: Iterable[Sequence[str]], *, heading: bool = True) -> None:
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
    Columns(heading, rows, indent=indent).write(rows)
