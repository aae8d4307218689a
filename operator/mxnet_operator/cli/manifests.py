"""Manifests from files or stdin: YAML documents, with the line of each field."""

import functools
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import typer
import yaml

from mxnet_operator.api.bundled_objects import is_job
from mxnet_operator.api.manifest_text import MOST_BYTES, ManifestError, decoded, read
from mxnet_operator.cli.errors import CommandError, UsageError

FilesArgument = Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Manifest files; - reads stdin.")]
FilesOption = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", metavar="FILE", help="Manifest file, as for kubectl; repeatable."),
]
_SCRIPTS = (".py", ".sh", ".ipynb")
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


class EmptyListError(UsageError):
    """A manifest is a List without items, as `kubectl get -o yaml` prints it where nothing was found."""


@dataclass(frozen=True)
class Document:
    """One YAML document: the name of its source, its position there (from 1), its content and its syntax tree."""

    source: str
    position: int
    content: Any
    node: yaml.Node

    @property
    def is_job(self) -> bool:
        return is_job(self.content)

    def line(self, path: str = "") -> int:
        """Return the line (from 1) of the field at `path`, or of its nearest ancestor that exists."""
        steps = tuple(key or index for index, key in _STEP.findall(path))
        lines = self._lines
        nearest = (lines[steps[:end]] for end in range(len(steps), 0, -1) if steps[:end] in lines)
        return next(nearest, self.node.start_mark.line) + 1

    @functools.cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:
        return {each.path: each.line for each in entries(self.node)}


class Entry(NamedTuple):
    """Field or item of a document: where it begins, and its value."""

    path: tuple[str, ...]
    line: int
    value: yaml.Node


def entries(node: yaml.Node, path: tuple[str, ...] = ()) -> Iterator[Entry]:
    """Yield every field and item below a node, with its line (from 0)."""
    children: list[tuple[str, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        children = [(key.value, key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        children = [(str(position), item, item) for position, item in enumerate(node.value)]
    for step, begin, value in children:
        yield Entry((*path, step), begin.start_mark.line, value)
        yield from entries(value, (*path, step))


def sources_given(files: list[str] | None, more_files: list[str] | None, example: str) -> list[str]:
    """Return the manifest sources of a command, from its FilesArgument and FilesOption.

    Raises:
        CommandError: there are none; `example` is shown as the hint.
    """
    sources = [*(files or ()), *(more_files or ())]
    if not sources:
        raise UsageError("no manifest given", hint=example)
    return sources


def read_documents(source: str) -> list[Document]:
    """Read every document in a file, or in stdin for `-`, and every item of a List; empty documents are skipped.

    Raises:
        EmptyListError: it holds Lists without items, and nothing else.
        CommandError: it can't be read, is no manifest (with the line), or is empty.
    """
    name = name_of(source)
    if source.endswith(_SCRIPTS):
        raise UsageError(
            f"{source}: a script, where an MXJob manifest is expected",
            hint=f"a script needs no -f: mxjob run {shlex.quote(source)}",
        )
    text = read_text(source)
    found = documents_in(text, name)
    if not found and any(True for _ in read(text)):
        raise EmptyListError(f"{name}: empty list; expected an MXJob manifest")
    if not found:
        raise UsageError(f"{name}: empty; expected an MXJob manifest")
    return found


def documents_in(text: str, name: str) -> list[Document]:
    """Parse every document in a text whose source is called `name`; empty where there are only comments.

    Raises:
        CommandError: it is no manifest (with the line).
    """
    try:
        found = [item for content, node in read(text) for item in _items(content, node)]
    except ManifestError as error:
        raise _unreadable(name, error) from error
    return [Document(name, position, content, node) for position, (content, node) in enumerate(found, start=1)]


def name_of(source: str) -> str:
    return "stdin" if source == "-" else source


def _items(content: Any, node: Any) -> list[tuple[Any, Any]]:
    """Return the items of a List, as `kubectl get` prints it; any other document is returned alone."""
    is_list = isinstance(content, dict) and str(content.get("kind")).endswith("List")
    if not is_list or not isinstance(content.get("items"), list):
        return [(content, node)]
    nodes = next((value.value for key, value in node.value if key.value == "items"), [node] * len(content["items"]))
    return list(zip(content["items"], nodes, strict=True))


def read_text(source: str) -> str:
    """Read the text of a file, or of stdin for `-`.

    Raises:
        CommandError: it can't be read, or is not text.
    """
    try:
        if source == "-":
            if sys.stdin is None:
                raise UsageError("stdin is closed; expected an MXJob manifest")
            return decoded(sys.stdin.buffer.read(MOST_BYTES + 1))
        with open(source, "rb") as file:  # noqa: PTH123 - a Path would lose what the user typed
            return decoded(file.read(MOST_BYTES + 1))
    except ManifestError as error:
        raise _unreadable(name_of(source), error) from error
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise UsageError(f"{source}: {getattr(error, 'strerror', '') or error}") from error


def _unreadable(name: str, error: ManifestError) -> CommandError:
    place = f":{error.line}:{error.column}" if error.line else ""
    return UsageError(f"{name}{place}: {error.problem}")
