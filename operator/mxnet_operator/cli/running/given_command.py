"""The command line that the user typed, as a hint repeats it: whole, with options added."""

import shlex
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

OF_A_DAY: Final = frozenset({"--as-of", "--python", "--mxnet"})
"""Options that choose the day, the Python or the MXNet of an image."""
_OF_A_FOLDER: Final = OF_A_DAY | {"--pip"}
"""Options that choose what the image of a folder has; another image is refused beside them."""
_REPEATABLE: Final = frozenset({"--pip", "--mount", "--env"})


def given_command(*options: str, without: str = "", by: Sequence[str] = ()) -> str:
    """Return the command with `options` (flag, value, flag, value, ...) added before a `--`.

    They replace options of the same name, unless an option can be repeated, and an image those that choose another one.
    The flag `without` is left out. The program `by` runs the script, which is its last word.
    """
    own, rest = _split()
    if by and by[-1] in own:
        own.remove(by[-1])
        rest = ["--", *by, *rest]
    for flag in options[::2]:
        for instead in _OF_A_FOLDER if flag == "--image" else {flag} - _REPEATABLE:
            own = _dropped(own, instead)
    pairs = dict.fromkeys(zip(options[::2], options[1::2], strict=True))
    added = [word for flag, value in pairs if value not in own for word in (flag, value)]
    return shlex.join(["mxjob", *(word for word in own if word != without), *added, *rest])


def is_given(*flags: str) -> bool:
    own, _ = _split()
    return any(word.partition("=")[0] in flags for word in own)


def given_values(flag: str) -> list[str]:
    own, _ = _split()
    after = [value for word, value in pairwise(own) if word == flag]
    return [*after, *(word.partition("=")[2] for word in own if word.startswith(f"{flag}="))]


def is_mounted(path: str) -> bool:
    """Whether the user gave a `--mount` at this path."""
    return any(each.split(":")[1:2] == [path] for each in given_values("--mount"))


def _split() -> tuple[list[str], list[str]]:
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    return words[:end], words[end:]


def _dropped(words: list[str], flag: str) -> list[str]:
    values = {at + 1 for at, word in enumerate(words) if word == flag}
    return [word for at, word in enumerate(words) if word.partition("=")[0] != flag and at not in values]
