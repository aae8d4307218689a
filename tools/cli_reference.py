"""Writes docs/cli-reference.md, the commands and options of `mxjob` and `mxnet-operator`, from what `--help` shows."""

import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from mxnet_operator.cli import mxjob, mxnet_operator
from mxnet_operator.cli.app import whole

APPS: Final = {"mxjob": mxjob.app, "mxnet-operator": mxnet_operator.app}
TARGET: Final = Path(__file__).resolve().parent.parent / "docs" / "cli-reference.md"
HEAD: Final = """# Command line

[`mxjob run` in scripts](run.md), with all exit codes. [The controller's flags](controller-reference.md).
Every command has `--help`, or `-h`.

<!-- Generated from `--help` by `make generate`. -->

## Which cluster

All commands take these options, except {others}.
NAME is the name of a job, or TYPE/NAME such as `mxnetjob/digits`.

| option | description |
|---|---|
"""
_MARKUP: Final = re.compile(r"\[/?[a-z ]*\]")
_RECORD: Final = re.compile(
    r"(?P<text>.*?)(?:\s*\[(?P<notes>(?:env var|default|required|x[<>]|\d+<)[^\]]*)\])?", re.DOTALL
)
_RANGE: Final = re.compile(r"[^;]*x[<>]=?[^;]*")
_ELSEWHERE: Final = {"mxnet-operator run": "[Its flags](controller-reference.md#flags), with variables and defaults."}
"""Commands whose options another page lists."""
_CODES: Final = {"mxjob run"}
"""Commands whose exit codes another page lists."""
_OF_TYPER: Final = ("--install-completion", "--show-completion")
"""Options that every program made with typer has, some of them only where a shell is found."""


def reference() -> str:
    """The whole document."""
    rows = [f"| `{written}` | {text} |" for written, text in _of_a_cluster()]
    first: dict[tuple[str, str], str] = {}
    sections = [text for name, app in APPS.items() for text in _sections(whole(app), name, 2, first)]
    commands = whole(mxjob.app).commands
    others = ", ".join(f"`mxjob {name}`" for name, each in commands.items() if not _asks_a_cluster(each))
    return "\n".join([HEAD.format(others=others) + "\n".join(rows), "", *sections])


def _asks_a_cluster(command: Any) -> bool:
    context = command.context_class(command)
    return any(each in _of_a_cluster() for each in _records(command, context))


def _sections(command: Any, name: str, level: int, first: dict[tuple[str, str], str]) -> Iterator[str]:
    """The section of a command, and after it those of the commands below it. `first` has where an option was told."""
    context = command.context_class(command, info_name=name)
    below = getattr(command, "commands", {})
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece]
    usage = [] if pieces == ["[OPTIONS]"] or below else [f"    {' '.join([name, *pieces])}", ""]
    parts = [f"{'#' * level} {name}", "", *usage, _text(command.help or "")]
    records = [each for each in _records(command, context) if each not in _of_a_cluster() and not _is_a_job(*each)]
    told: dict[str, list[str]] = {}
    for each in records:
        told.setdefault(first.setdefault(each, name), []).append(f"`{each[0]}`")
    if name in _ELSEWHERE:
        parts += ["", _ELSEWHERE[name]]
    elif name in told:
        rows = [_row(*each) for each in records if first[each] == name]
        parts += ["", "| option | description |", "|---|---|", *rows]
    for other, options in told.items():
        if other != name:
            parts += ["", f"As for [`{other}`](#{_anchor(other)}): {', '.join(options)}."]
    if below:
        parts += ["", ", ".join(f"[`{each}`](#{_anchor(f'{name} {each}')})" for each in below)]
    if command.epilog:
        examples = _plain(_lines(command.epilog))
        parts += ["", "```text", examples.partition("\n\nExit codes")[0] if name in _CODES else examples, "```"]
    yield "\n".join([*parts, ""])
    for each, one in below.items():
        yield from _sections(one, f"{name} {each}", level + 1, first)


def _records(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    """The arguments and options of a command as its help shows them: how each is written, and what it does."""
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record and not set(parameter.opts) & set(_OF_TYPER):
            yield record


def _is_a_job(written: str, text: str) -> bool:
    """Whether an argument is the name of a job, as of all commands that take one."""
    return written.startswith("NAME") and text.startswith(("Job name, or TYPE/NAME", "Job names, or TYPE/NAME"))


@cache
def _of_a_cluster() -> dict[tuple[str, str], None]:
    """The options by which a command chooses its cluster, as all such commands have them."""
    get = whole(mxjob.app).commands["get"]
    chosen = [each for each in get.params if set(each.opts) & {"--kubeconfig", "--context", "--namespace"}]
    context = get.context_class(get)
    return dict.fromkeys(each.get_help_record(context) for each in chosen)


def _row(written: str, text: str) -> str:
    found = _RECORD.fullmatch(text)
    notes = _RANGE.sub("", (found["notes"] or "") if found else "").strip("; ")
    words = _plain(found["text"] if found else text)
    words += f" {notes.capitalize()}." if notes else ""
    return f"| {_cell(f'`{written}`')} | {_cell(words)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _text(markup: str) -> str:
    """A paragraph of help as Markdown: rich's bold is a command to type."""
    text = re.sub(r"\[bold\](.*?)\[/(?:bold)?\]", r"`\1`", _dedented(markup))
    return _MARKUP.sub("", text).replace("<", "\\<")


def _plain(markup: str) -> str:
    return _MARKUP.sub("", _dedented(markup)).replace("\\[", "[")


def _lines(epilog: str) -> str:
    """An epilog whose examples, which stand as paragraphs of their own, follow each other."""
    return re.sub(r"\n\n(?=  )", "\n", _dedented(epilog))


def _dedented(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def _anchor(heading: str) -> str:
    return heading.replace(" ", "-")


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
