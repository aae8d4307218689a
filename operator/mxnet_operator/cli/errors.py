"""Failures of a command: one message, a hint at the next step, and an exit code for scripts."""

import contextlib
import errno
import sys
import traceback
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, Final

import typer
from rich.text import Text

from mxnet_operator.api.installation import install_command
from mxnet_operator.api.printable import printable
from mxnet_operator.cli.output.terminal import drop_output, message_console, open_streams
from mxnet_operator.cli.usage_hints import usage_hint

_ClickError: Final[type[Exception]] = typer.BadParameter.__mro__[2]
"""ClickException, from click or from the copy of click in newer Typer releases."""
_UNWRITTEN: Final = (errno.ENOSPC, errno.EDQUOT)


class Exit(IntEnum):
    """Exit codes of `mxjob`."""

    OK = 0
    FAILED = 1
    """The job failed, or the command did."""
    USAGE = 2
    """An option is wrong, or a manifest is invalid."""
    API = 3
    """The API server can't be reached, or rejects a request."""
    DELETED = 4
    """`mxjob run --adopt`: the job was deleted by somebody else."""
    INTERNAL = 70
    """A bug of `mxjob`, shown with a traceback; EX_SOFTWARE of sysexits.h."""
    TRY_AGAIN = 75
    """`mxjob run --adopt`: the job's outcome is unknown, and the same command finds the job again; EX_TEMPFAIL."""
    TIMEOUT = 124
    """`--timeout` passed; the exit code of timeout(1)."""
    INTERRUPTED = 130
    CLOSED_PIPE = 141
    """The reader of the output is gone; 128 + SIGPIPE, as a shell reports it for kubectl or cat."""
    TERMINATED = 143


class CommandError(Exception):
    """Error with a message for the user, a hint at the next step, and an exit code."""

    def __init__(self, message: str, *, hint: str = "", code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


@contextlib.contextmanager
def extra_needed(extra: str) -> Iterator[None]:
    """Turn a failed import of a package that an extra of this distribution installs into an error that says so.

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
            hint=install_command(extra),
        ) from error


def run_app(app: Callable[..., Any], name: str) -> None:
    """Run a Typer app and exit: a CommandError shows its message, an unexpected error exits with `Exit.INTERNAL`."""
    open_streams()
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
    except Exception as error:  # Python's own 1 would say that a job Failed
        if (unwritten := unwritten_output(error, Exit.FAILED)) is None:
            return _unexpected()
        show_error(unwritten)
        drop_output()
        return unwritten.code


def unwritten_output(error: BaseException, code: Exit) -> CommandError | None:
    """Return the error, with this exit code, of output to a full disk; None for any other."""
    if not isinstance(error, OSError) or error.errno not in _UNWRITTEN:
        return None
    return CommandError(f"the output can't be written: {error.strerror}", code=code)


def _wrong_usage(error: Any) -> Exit:
    """Show which option or argument is wrong; a command called without arguments has shown its help already."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ != "NoArgsIsHelpError":
        usage = f"{context.get_usage()}\ntry: {context.command_path} --help" if context else ""
        hint = usage_hint(error) or usage
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
    raise typer.Exit(code)
