"""How a command fails: one message, what to do next, and an exit code that a script can tell apart."""

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, Final

import typer
from rich.text import Text

from mxnet_operator.api.printable import printable
from mxnet_operator.cli.terminal import drop_output, message_console

_ClickError: Final[type[Exception]] = typer.BadParameter.__mro__[2]
"""ClickException, of click or of the copy of it in newer typers."""
_DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class Exit(IntEnum):
    """What `mxjob` exits with."""

    OK = 0
    FAILED = 1
    """The job failed, or the command couldn't do what it was asked."""
    USAGE = 2
    """A wrong option, or a manifest that isn't valid."""
    API = 3
    """The API server can't be reached, or refuses."""
    DELETED = 4
    """`mxjob run --adopt`: somebody deleted the job."""
    INTERNAL = 70
    """A mistake of ours, with a traceback; sysexits.h's EX_SOFTWARE."""
    TRY_AGAIN = 75
    """`mxjob run --adopt`: how the job ends isn't known, and the same command finds it again; EX_TEMPFAIL."""
    TIMEOUT = 124
    """`--timeout` passed; timeout(1)'s code."""
    INTERRUPTED = 130
    CLOSED_PIPE = 141
    """Nobody reads the output any more; what a shell reports of kubectl or cat, which SIGPIPE ends then."""
    TERMINATED = 143


class CommandError(Exception):
    """An error that a user can understand, with a hint at the next step where there is one."""

    def __init__(self, message: str, *, hint: str = "", code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


@contextlib.contextmanager
def extra_needed(extra: str) -> Iterator[None]:
    """Around imports of what only an extra of this distribution brings: say how to install it.

    Raises:
        CommandError: a module outside this distribution is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "mxnet_operator":
            raise
        raise CommandError(
            f"this command needs the Python package {missing}, which is not installed",
            hint=f"pip install 'mxnet-operator[{extra}]'",
        ) from error


def run_app(app: Callable[..., Any], name: str) -> None:
    """Run a typer app to its exit; a CommandError becomes its message, what nobody expected has its own exit code."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by who started us
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: PTH123, SIM115 - for as long as the process lives
    try:
        code = _outcome(app, name)
    except BrokenPipeError:
        drop_output()
        code = Exit.CLOSED_PIPE
    sys.exit(code or Exit.OK)


def _outcome(app: Callable[..., Any], name: str) -> Any:
    try:
        return app(prog_name=name, standalone_mode=False)
    except CommandError as error:
        show_error(error)
        return error.code
    except _ClickError as error:
        return _wrong_usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno not in _DISK_FULL:
            return _unexpected()
        show_error(CommandError(f"the output can't be written: {error.strerror}"))
        return Exit.FAILED
    except Exception:  # Python's own 1 would say that a job Failed
        return _unexpected()


def _wrong_usage(error: Any) -> Exit:
    """Say which option or argument is wrong; a command without any that it needs has shown its help already."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ != "NoArgsIsHelpError":
        hint = f"{context.get_usage()}\ntry: {context.command_path} --help" if context else ""
        show_error(CommandError(error.format_message(), hint=hint))
    return Exit.USAGE


def _unexpected() -> Exit:
    sys.stderr.write(printable(traceback.format_exc()))
    return Exit.INTERNAL


def show_error(error: CommandError) -> None:
    """Write an error and its hint to stderr."""
    console = message_console()
    console.print(Text("error:", style="bold red"), end=" ")
    console.print(Text(printable(error.message)))
    if error.hint:
        console.print(Text(printable(error.hint)))


def leave(code: Exit) -> None:
    """End the command with this exit code."""
    raise typer.Exit(code)
