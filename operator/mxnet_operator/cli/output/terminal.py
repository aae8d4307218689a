"""Output streams: data to stdout, messages to stderr, colours on a terminal only.

This is the one door to the terminal, and nothing that came from outside passes it as anything but text: it is not
markup, links or emoji, and what a terminal would obey is shown instead (`api/printable.py`). Messages and tables are
always so; data (logs, manifests) only on a terminal, and reach a pipe or a file byte for byte.

rich honours NO_COLOR, TERM=dumb and a stream that isn't a terminal by itself.
"""

import os
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from mxnet_operator.api.printable import printable, printable_lines


class _Stdout:
    """State of stdout in this process."""

    needs_reader = True
    """Whether a closed stdout, as after `| head -1`, ends this process."""
    has_open_line = False
    """Whether the last log line still lacks its newline."""


class _Console(Console):
    """rich Console without markup, emoji, highlighting and line wrapping."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, soft_wrap=True, markup=False, emoji=False, **settings)

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print as rich does, a message never at the end of a log line."""
        if self.stderr:
            _end_log_line()
        super().print(*objects, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich does, with control characters of texts escaped; every text for the terminal passes here."""
        if isinstance(renderable, Text) and (shown := printable(renderable.plain)) != renderable.plain:
            renderable = renderable.blank_copy(shown)  # without the styles of its parts
        return super().render(renderable, options)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError again, where rich would exit, or discard further output; called by rich."""
        if _Stdout.needs_reader:
            raise  # noqa: PLE0704
        _discard(self.file)


def message_console() -> Console:
    """Return a console on stderr, for progress, notes and errors."""
    return _Console(stderr=True)


def data_console() -> Console:
    """Return a console on stdout, for a command's result such as a table."""
    return _Console()


def say(text: str, style: str | None = None) -> None:
    """Write one message line to stderr."""
    message_console().print(Text(printable(text), style or ""))


def write_line(text: str) -> None:
    """Write a line of data to stdout and flush it."""
    _write(printable(text) if sys.stdout.isatty() else text, "\n")


def write_log(piece: str, prefix: str = "", *, raw: bool = False) -> None:
    """Write a log line, newline included, to stdout and flush it; `raw` passes control characters to a terminal."""
    if raw or not sys.stdout.isatty():
        _write(prefix, piece)
        _Stdout.has_open_line = not piece.endswith("\n")
        return
    for line in printable_lines(piece):
        _write(prefix, line, "\n")


def _end_log_line() -> None:
    """End a log line that has no newline, where the next message would follow it in the same pipe or file."""
    if _Stdout.has_open_line and _streams_are_one():
        _write("\n")
        _Stdout.has_open_line = False


def _streams_are_one() -> bool:
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # a stream that is closed, or has no file
        return False


def open_streams() -> None:
    """Give the streams that were closed by the parent process a file that takes whatever is written."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - for as long as the process lives


def go_on_unread() -> None:
    """Discard output once its reader is gone, instead of ending the process."""
    _Stdout.needs_reader = False


def drop_output() -> None:
    """Discard all further output, so that Python's flush at exit doesn't fail on a closed pipe."""
    for stream in (sys.stdout, sys.stderr):
        _discard(stream)


def _discard(stream: Any) -> None:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(descriptor, stream.fileno())
    finally:
        os.close(descriptor)


def _write(*parts: str) -> None:
    """Write text to stdout whose surrogate escapes stand for bytes that are not UTF-8."""
    content = "".join(parts).encode("utf-8", "surrogateescape")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        if _Stdout.needs_reader:
            raise
        _discard(sys.stdout)
