"""Where output goes: data to stdout, everything said about it to stderr, colours on a terminal only.

This is the one door to the terminal, and nothing that came from outside passes it as anything but text: it is not
markup, links or emoji, and what a terminal would obey is shown instead (`api/printable.py`). Messages and tables are
always so; data (logs, manifests) only on a terminal, and reach a pipe or a file byte for byte.

rich honours NO_COLOR, TERM=dumb and a stream that isn't a terminal by itself.
"""

import itertools
import os
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Span, Text

from mxnet_operator.api.printable import printable, printable_lines


class _Readers:
    """Whether output without a reader, as after `| head -1`, ends this process."""

    needed = True


class _Console(Console):
    """A console on which text is text, and lines are not wrapped."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, soft_wrap=True, markup=False, emoji=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich's; every text on its way to the screen comes through here."""
        return super().render(_printable_text(renderable) if isinstance(renderable, Text) else renderable, options)

    def on_broken_pipe(self) -> None:
        """Called by rich while it handles BrokenPipeError: raise it, where rich would exit, or go on unread."""
        if _Readers.needed:
            raise  # noqa: PLE0704
        _discard(self.file)


def message_console() -> Console:
    """For what a person reads: progress, notes, errors."""
    return _Console(stderr=True)


def data_console() -> Console:
    """For tables and the like, which are a command's result."""
    return _Console()


def say(text: str, style: str | None = None) -> None:
    """One line for a person, on stderr."""
    message_console().print(Text(printable(text), style or ""))


def write_line(text: str) -> None:
    """A line of data, on stdout, at once: whoever reads the pipe is waiting for it."""
    _write(printable(text) if stdout_is_terminal() else text, "\n")


def write_log(piece: str, prefix: str = "", *, raw: bool = False) -> None:
    """A log's line as it came, its end included, on stdout, at once; `raw` leaves it as it is on a terminal, too."""
    if raw or not stdout_is_terminal():
        _write(prefix, piece)
        return
    for line in printable_lines(piece):
        _write(prefix, line, "\n")


def stdout_is_terminal() -> bool:
    """Whether what is written to stdout is read by a person."""
    return sys.stdout.isatty()


def go_on_unread() -> None:
    """From now on output without a reader is dropped, and what this process is there for goes on."""
    _Readers.needed = False


def drop_output() -> None:
    """Have nothing fail any more for want of a reader: what Python writes at its end goes nowhere."""
    for stream in (sys.stdout, sys.stderr):
        _discard(stream)


def _discard(stream: Any) -> None:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(descriptor, stream.fileno())
    finally:
        os.close(descriptor)


def _write(*parts: str) -> None:
    """Write to stdout what may hold bytes that are no text, as Python reads them."""
    content = "".join(parts).encode("utf-8", "surrogateescape")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        if _Readers.needed:
            raise
        _discard(sys.stdout)


def _printable_text(text: Text) -> Text:
    """The text as `printable`, with the styles of its parts."""
    plain = text.plain
    if printable(plain) == plain:
        return text
    shown = [printable(character) for character in plain]
    ends = [0, *itertools.accumulate(map(len, shown))]
    result = text.blank_copy("".join(shown))
    result.spans = [Span(ends[span.start], ends[min(span.end, len(plain))], span.style) for span in text.spans]
    return result
