"""The command that was meant by one with a wrong option or argument."""

import difflib
import itertools
import re
import shlex
import sys
from typing import Any, Final

_LIKENESS: Final = 0.8
_REPLICA: Final = re.compile(r"\(([a-z]+-\d+|all)\)", re.IGNORECASE)


def usage_hint(error: Any) -> str:
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
