"""Where output goes: data to stdout, everything said about it to stderr, colours on a terminal only.

rich honours NO_COLOR, TERM=dumb and a stream that isn't a terminal by itself. Lines of text that aren't ours are
never wrapped, highlighted or taken for markup.
"""

import sys

from rich.console import Console


def message_console() -> Console:
    """For what a person reads: progress, notes, errors."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def data_console() -> Console:
    """For tables and the like, which are a command's result."""
    return Console(highlight=False, soft_wrap=True)


def say(text: str, style: str | None = None) -> None:
    """One line for a person, on stderr."""
    message_console().print(text, style=style, markup=False)


def write_line(text: str) -> None:
    """One line of data, on stdout, at once: whoever reads the pipe is waiting for it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
