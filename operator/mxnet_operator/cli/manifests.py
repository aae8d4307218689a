"""Manifests as people write them: YAML documents from a file or stdin, with the line where each field stands."""

import re
import sys
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
import yaml

from mxnet_operator.api import names
from mxnet_operator.api.kinds import ALL
from mxnet_operator.cli.errors import CommandError, Exit

FilesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[FILE]...", help="Manifests; - reads stdin.", show_default=False)
]
FilesOption = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", metavar="FILE", help="The same, in kubectl's manner.", show_default=False),
]
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[]+)")


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
        CommandError: it can't be read, is no YAML (with the line), or has nothing in it.
    """
    name = name_of(source)
    found = documents_in(read_text(source), name)
    if not found:
        raise CommandError(f"{name}: nothing in it; an MXJob manifest is expected", code=Exit.USAGE)
    return found


def documents_in(text: str, name: str) -> list[Document]:
    """The same of a text, whose source is called `name`; empty where there is nothing but comments.

    Raises:
        CommandError: it is no YAML (with the line).
    """
    try:
        loaded = [(content, node) for content, node in _load(text) if content is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise CommandError(f"{where}: not valid YAML: {error.problem or error.context}", code=Exit.USAGE) from error
    except yaml.YAMLError as error:
        raise CommandError(f"{name}: not valid YAML: {error}", code=Exit.USAGE) from error
    except (RecursionError, ValueError) as error:
        raise CommandError(f"{name}: can't be read: {error}", code=Exit.USAGE) from error
    found = [item for content, node in loaded for item in _items(content, node)]
    return [Document(name, position, content, node) for position, (content, node) in enumerate(found, start=1)]


def name_of(source: str) -> str:
    """What messages call a source."""
    return "stdin" if source == "-" else source


def _load(text: str) -> Iterator[tuple[Any, Any]]:
    loader = _Loader(text)
    while loader.check_node():
        node: Any = loader.get_node()
        yield loader.construct_document(node), node


def _items(content: Any, node: Any) -> list[tuple[Any, Any]]:
    """What a List holds, as `kubectl get` writes it; any other document is itself."""
    is_list = isinstance(content, dict) and str(content.get("kind")).endswith("List")
    if not is_list or not isinstance(content.get("items"), list):
        return [(content, node)]
    nodes = next(value for key, value in node.value if key.value == "items")
    return list(zip(content["items"], nodes.value, strict=True))


def read_text(source: str) -> str:
    """What stands in a file, or in stdin for `-`.

    Raises:
        CommandError: it can't be read, or is no text.
    """
    try:
        if source == "-":
            return sys.stdin.buffer.read().decode()
        with open(source, "rb") as file:  # noqa: PTH123 - a Path would lose what the user typed
            return file.read().decode()
    except OSError as error:
        raise CommandError(f"{source}: {error.strerror or error}", code=Exit.USAGE) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{source}: not text in UTF-8: byte {error.start} can't be read", code=Exit.USAGE) from error


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice, as kubectl does, where PyYAML silently takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, f'key "{key.value}" is set twice', key.start_mark)
            seen.add(key.value if isinstance(key.value, str) else id(key))
        return super().construct_mapping(node, deep)


def _child(node: yaml.Node, step: str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and step.isdigit() and int(step) < len(node.value):
        item = node.value[int(step)]
        return item.start_mark.line, item
    return None
