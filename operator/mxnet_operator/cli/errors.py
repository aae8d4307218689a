"""Failures of a command: one message, a hint at the next step or the command that was meant, and an exit code."""

import contextlib
import difflib
import errno
import itertools
import re
import shlex
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

_ClickError: Final[type[Exception]] = typer.BadParameter.__mro__[2]
"""ClickException, from click or from the copy of click in newer Typer releases."""
_UNWRITTEN: Final = (errno.ENOSPC, errno.EDQUOT)
_LIKENESS: Final = 0.8
_REPLICA: Final = re.compile(r"\(([a-z]+-\d+|all)\)", re.IGNORECASE)


class Exit(IntEnum):
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

    def __init__(self, message: str, hint: str = "", *, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


class UsageError(CommandError):
    """Error of a wrong option or an invalid manifest."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint, code=Exit.USAGE)


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
            f"this command needs the Python package {missing}, which is not installed", hint=install_command(extra)
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
            sys.stderr.write(printable(traceback.format_exc()))
            return Exit.INTERNAL
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
        hint = _usage_hint(error) or usage
        show_error(CommandError(error.format_message(), hint=hint))
    return Exit.USAGE


def show_error(error: CommandError) -> None:
    console = message_console()
    console.print(Text("error:", style="bold red"), end=" ")
    console.print(Text(printable(error.message)))
    if error.hint:
        console.print(Text(printable(error.hint)))


def leave(code: Exit) -> None:
    raise typer.Exit(code)


def _usage_hint(error: Any) -> str:
    """Return what was probably meant by a wrong usage, a usage error of click's; empty where that isn't known.

    Options that are named as possible, but are little like the given one, are taken from the error.
    """
    context = getattr(error, "ctx", None)
    if context is None:
        return ""
    options = {name: each for each in context.command.params for name in (*each.opts, *each.secondary_opts)}
    if (given := getattr(error, "option_name", "")) and hasattr(error, "possibilities"):
        error.possibilities = difflib.get_close_matches(given, error.possibilities or (), cutoff=_LIKENESS)
        takes_script = any("[-- ARGUMENTS" in (each.metavar or "") for each in context.command.params)
        return _script_arguments(context, options) if takes_script and not error.possibilities else ""
    replica = _REPLICA.search(error.format_message()) if "--replica" in options else None
    if replica is not None:
        words = [word for word in sys.argv[1:] if word != replica[1]]
        return f"a replica is an option: {shlex.join(['mxjob', *words, '--replica', replica[1]])}"
    return ""


def _script_arguments(context: Any, options: dict[str, Any]) -> str:
    """Return the command with all that is no option of ours after a `--`."""
    path = context.command_path.split()
    words = iter(sys.argv[len(path) :])
    own: list[str] = []
    arguments: list[str] = []
    has_script = False
    for word in words:
        name, is_whole, _ = word.partition("=")
        if word == "--":
            arguments += words
        elif name in options:
            has_value = not (is_whole or options[name].is_flag)
            own += [word, *itertools.islice(words, 1)] if has_value else [word]
        elif not has_script and not arguments and not word.startswith("-"):
            has_script = True
            own.append(word)
        else:
            arguments.append(word)
    meant = f": {shlex.join([*path, *own, '--', *arguments])}" if has_script else ""
    return f"the script's arguments follow --{meant}"
