"""Manifests as people write them: YAML documents from a file or stdin, with the line where each field stands."""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import typer
import yaml

from mxnet_operator.api import names
from mxnet_operator.api.kinds import ALL
from mxnet_operator.api.manifest_text import MOST_BYTES, ManifestError, decoded, read
from mxnet_operator.cli.errors import CommandError, Exit

FilesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[FILE]...", help="Manifests; - reads stdin.", show_default=False)
]
FilesOption = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", metavar="FILE", help="The same, in kubectl's manner.", show_default=False),
]
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


class EmptyListError(CommandError):
    """A manifest is a list without items, as `kubectl get -o yaml` writes it where there is nothing to get."""


@dataclass(frozen=True)
class Document:
    """One document: its source's name, its position there (from 1), its content and where that stands."""

    source: str
    position: int
    content: Any
    node: yaml.Node

    @property
    def is_job(self) -> bool:
        """Whether it is meant as a job; without a kind it is, so that its absence is reported."""
        kind = self.content.get("kind", names.KIND) if isinstance(self.content, dict) else names.KIND
        return isinstance(kind, str) and kind.lower() in {each.kind.lower() for each in ALL}

    def line(self, path: str = "") -> int:
        """The line (from 1) of the field at `path`, or of the nearest field above it that is there."""
        return line_of(self.node, [key or index for index, key in _STEP.findall(path)]) + 1


def line_of(node: yaml.Node, path: Iterable[str]) -> int:
    """The line (from 0) of the field at a path of keys and positions, or of the nearest above it that is there."""
    line = node.start_mark.line
    for step in path:
        found = _child(node, step)
        if found is None:
            break
        line, node = found
    return line


def sources_given(files: list[str] | None, more_files: list[str] | None, example: str) -> list[str]:
    """What a command that takes manifests by FilesArgument and FilesOption is to read.

    Raises:
        CommandError: nothing was given; `example` says how it would be.
    """
    sources = [*(files or ()), *(more_files or ())]
    if not sources:
        raise CommandError("no manifest given", hint=example, code=Exit.USAGE)
    return sources


def read_documents(source: str) -> list[Document]:
    """Every document in a file, or in stdin for `-`, and every item of a List; empty documents are passed over.

    Raises:
        EmptyListError: it holds lists without items, and nothing else.
        CommandError: it can't be read, is no manifest (with the line), or has nothing in it.
    """
    name = name_of(source)
    text = read_text(source)
    found = documents_in(text, name)
    if not found and any(True for _ in read(text)):
        raise EmptyListError(f"{name}: an empty list; an MXJob manifest is expected", code=Exit.USAGE)
    if not found:
        raise CommandError(f"{name}: nothing in it; an MXJob manifest is expected", code=Exit.USAGE)
    return found


def documents_in(text: str, name: str) -> list[Document]:
    """The same of a text, whose source is called `name`; empty where there is nothing but comments.

    Raises:
        CommandError: it can't be a manifest (with the line).
    """
    try:
        found = [item for content, node in read(text) for item in _items(content, node)]
    except ManifestError as error:
        raise _unreadable(name, error) from error
    return [Document(name, position, content, node) for position, (content, node) in enumerate(found, start=1)]


def name_of(source: str) -> str:
    """What messages call a source."""
    return "stdin" if source == "-" else source


def _items(content: Any, node: Any) -> list[tuple[Any, Any]]:
    """What a List holds, as `kubectl get` writes it; any other document is itself."""
    is_list = isinstance(content, dict) and str(content.get("kind")).endswith("List")
    if not is_list or not isinstance(content.get("items"), list):
        return [(content, node)]
    nodes = next((value.value for key, value in node.value if key.value == "items"), [node] * len(content["items"]))
    return list(zip(content["items"], nodes, strict=True))


def read_text(source: str) -> str:
    """What stands in a file, or in stdin for `-`.

    Raises:
        CommandError: it can't be read, or is no text.
    """
    try:
        if source == "-":
            return decoded(sys.stdin.buffer.read(MOST_BYTES + 1))
        with open(source, "rb") as file:  # noqa: PTH123 - a Path would lose what the user typed
            return decoded(file.read(MOST_BYTES + 1))
    except OSError as error:
        raise CommandError(f"{source}: {error.strerror or error}", code=Exit.USAGE) from error
    except ValueError as error:  # a name with a NUL, or no manifest
        if isinstance(error, ManifestError):
            raise _unreadable(name_of(source), error) from error
        raise CommandError(f"{source}: {error}", code=Exit.USAGE) from error


def _unreadable(name: str, error: ManifestError) -> CommandError:
    place = f":{error.line}:{error.column}" if error.line else ""
    return CommandError(f"{name}{place}: {error.problem}", code=Exit.USAGE)


def _child(node: yaml.Node, step: str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and step.isdigit() and int(step) < len(node.value):
        item = node.value[int(step)]
        return item.start_mark.line, item
    return None
