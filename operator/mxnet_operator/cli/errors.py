"""How a command fails: one message, what to do next, and an exit code that a script can tell apart."""

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from enum import IntEnum

import typer

from mxnet_operator.cli.terminal import message_console


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


def run_app(app: typer.Typer, name: str) -> None:
    """Run a typer app to its exit; a CommandError becomes its message, a reader that went away ends it quietly.

    What nobody expected has an exit code of its own.
    """
    try:
        app(prog_name=name)
    except CommandError as error:
        show_error(error)
        sys.exit(error.code)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        # As with `mxjob logs a | head`. Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.FAILED)
    except Exception:  # Python's own 1 would say that a job Failed
        traceback.print_exc()
        sys.exit(Exit.INTERNAL)


def show_error(error: CommandError) -> None:
    """Write an error and its hint to stderr."""
    console = message_console()
    console.print("[bold red]error:[/]", end=" ")
    console.print(error.message, markup=False)
    if error.hint:
        console.print(error.hint, markup=False)


def leave(code: Exit) -> None:
    """End the command with this exit code."""
    raise typer.Exit(code)
