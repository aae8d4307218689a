"""Manifest text in YAML or JSON, read and written as kubectl does, with the line of each field.

The one reader for the command line and the Airflow provider. Whatever the text is, it comes out as what JSON can say
or as one error with its place.
"""

import codecs
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final, NamedTuple

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from mxnet_operator.api.yaml_scalars import TAG, json_number, plain_tag, plain_value

MOST_BYTES: Final = 16 * 2**20
"""Maximum size of a manifest in bytes, many times what the API server accepts."""
_DEEPEST: Final = 100
_MOST_VALUES: Final = MOST_BYTES // 2
"""As many as a text of MOST_BYTES can have without aliases."""
_TOO_DEEP: Final = f"nested deeper than {_DEEPEST} levels"
_BOMS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_TEMPLATE_HINT: Final = (
    "; this looks like a template that is not rendered ({{ ... }}): render it first, as `helm template` does"
)


class ManifestError(ValueError):
    """Error that a manifest can't be read; `line` and `column` count from 1, 0 where no place is known."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {problem}" if line else problem)
        self.problem = problem
        self.line = line
        self.column = column


class Comment(NamedTuple):
    """Comment of a text; `line` counts from 0, `own_line` is whether no field stands on it."""

    line: int
    own_line: bool
    text: str


def decoded(content: bytes) -> str:
    """Return the text of a file: UTF-8, or UTF-16 with its byte order mark, as Windows' shells write it.

    Raises:
        ManifestError: it is no text, or larger than any manifest.
    """
    if len(content) > MOST_BYTES:
        raise ManifestError(f"larger than {MOST_BYTES // 2**20} MiB, which is no manifest")
    encoding = next((name for mark, name in _BOMS if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise ManifestError(
            f"not text in {encoding.upper()[:6].rstrip('-')}: byte {error.start} can't be read"
        ) from error


def read(text: str) -> Iterator[tuple[Any, yaml.Node]]:
    """Yield every document that isn't empty: its content, of JSON's types, and where it stands.

    Raises:
        ManifestError: it is not YAML, or says what JSON can't.
    """
    try:
        for node in _nodes(text):
            content = _value(node, 0, count())
            if content is not None:
                yield content, node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        problem = f"not valid YAML: {error.problem or error.context}"
        raise ManifestError(problem + _hint(text, line), line, column) from error
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1
        problem = f"not valid YAML: character U+{error.character:04X} is not allowed"
        raise ManifestError(problem, line, column) from error
    except RecursionError as error:
        raise ManifestError(_TOO_DEEP) from error
    except ManifestError as error:
        hint = _hint(text, error.line)
        raise ManifestError(error.problem + hint, error.line, error.column) if hint else error from error


def comments(text: str) -> list[Comment]:
    """Return the comments of a text that `read` can read."""
    loader = _Loader(text)
    while loader.check_event():
        loader.get_event()  # type: ignore[no-untyped-call]
    return loader.comments


def load(text: str) -> Any:
    """Return the content of a text of one document.

    Raises:
        ManifestError: it can't be read, or there are none or several.
    """
    documents = [content for content, _ in read(text)]
    if len(documents) != 1:
        raise ManifestError(f"{len(documents)} documents, where one is expected")
    return documents[0]


def jsonable(value: Any, *, keep: tuple[type, ...] = ()) -> Any:
    """Return a copy of a program's manifest, of JSON's types and those to `keep` only.

    Raises:
        ManifestError: there is something else in it, named by its path.
    """
    return _jsonable(value, "", 0, keep)


def dump(content: Any, **settings: Any) -> str:
    """Return YAML in block style of which kubectl reads the same content again."""
    return dump_all([content], **settings)


def dump_all(documents: Iterable[Any], *, dumper: type[yaml.SafeDumper] | None = None, **settings: Any) -> str:
    """Return YAML of several documents, of which kubectl reads the same content again; `settings` are PyYAML's."""
    settings = {"sort_keys": False, "allow_unicode": True, **settings}
    text: str = yaml.dump_all(documents, Dumper=dumper or Dumper, **settings)
    return text


class Dumper(yaml.SafeDumper):
    """PyYAML dumper that quotes what kubectl would not read as text."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        """Resolve a tag as PyYAML does, of unquoted scalars as kubectl does."""
        if kind is yaml.ScalarNode and implicit[0]:
            ours = plain_tag(value)
            if ours != f"{TAG}str":
                return ours
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]

    def text(self, value: str) -> yaml.Node:
        """Represent a text, quoted where YAML would take one of its characters for the end of a line."""
        quoted = '"' if any(end in value for end in "\x85\u2028\u2029") else None
        return self.represent_scalar(f"{TAG}str", value, style=quoted or self.style_of(value))

    def style_of(self, value: str) -> str | None:  # noqa: ARG002
        """Return the style of a text; None: as its characters allow."""
        return None


Dumper.add_representer(str, Dumper.text)


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML loader with kubectl's tags for unquoted scalars."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self.comments: list[Comment] = []

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node as PyYAML does; an anchor may be defined again, as YAML allows."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if not isinstance(event, yaml.AliasEvent):
            self.anchors.pop(getattr(event, "anchor", None), None)
        return super().compose_node(parent, index)

    def scan_to_next_token(self) -> None:
        """Skip what PyYAML skips, and in braces tabs: JSON may be indented by them."""
        start = self.pointer
        super().scan_to_next_token()
        while self.flow_level and self.peek() == "\t":
            self.forward()
            super().scan_to_next_token()
        self._keep_comments(start)

    def scan_block_scalar_ignored_line(self, start_mark: Any) -> None:
        """Skip what PyYAML skips behind `|`."""
        start = self.pointer
        super().scan_block_scalar_ignored_line(start_mark)
        self._keep_comments(start)

    def _keep_comments(self, start: int) -> None:
        skipped = self.buffer[start : self.pointer]
        line = self.line - skipped.count("\n")
        for number, each in enumerate(skipped.split("\n") if "#" in skipped else (), line):
            _, mark, said = each.partition("#")
            if mark:
                own_line = number > line or not self.buffer[:start].rpartition("\n")[2].strip(" -")
                self.comments.append(Comment(number, own_line, f"#{said.rstrip()}"))

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        """Resolve a tag as PyYAML does, of unquoted scalars as kubectl does."""
        if kind is yaml.ScalarNode and implicit[0]:
            return plain_tag(value)
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


def _nodes(text: str) -> Iterator[yaml.Node]:
    loader = _Loader(text)
    while loader.check_node():
        node = loader.get_node()
        if node is not None:
            yield node


def _value(node: yaml.Node, depth: int, counted: Iterator[int]) -> Any:
    if depth > _DEEPEST:
        raise _error(_TOO_DEEP, node)
    if next(counted) > _MOST_VALUES:
        raise _error(f"its aliases stand for more than {_MOST_VALUES} values", node)
    tag = node.tag.removeprefix(TAG)
    if isinstance(node, yaml.MappingNode) and tag == "map":
        return _mapping(node, depth, counted)
    if isinstance(node, yaml.SequenceNode) and tag == "seq":
        return [_value(item, depth + 1, counted) for item in node.value]
    if isinstance(node, yaml.ScalarNode) and tag in {"str", "null", "bool", "int", "float", "timestamp", "merge"}:
        return _scalar(node, tag)
    shown = f"!!{tag}" if node.tag.startswith(TAG) else node.tag
    raise _error(f"the tag {shown} says what JSON can't", node)


def _mapping(node: yaml.MappingNode, depth: int, counted: Iterator[int]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for key, value in node.value:
        if key.tag == f"{TAG}merge":
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for source in reversed(sources):
                if not isinstance(source, yaml.MappingNode):
                    raise _error("<< merges mappings only", source)
                merged |= _value(source, depth + 1, counted)
            continue
        name = _key(key)
        if name in own:
            raise _error(f'key "{name}" is set twice', key)
        own[name] = _value(value, depth + 1, counted)
    return {**merged, **own}


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        kind = "mapping" if isinstance(node, yaml.MappingNode) else "list"
        raise _error(f"a key can't be a {kind}", node)
    value = _scalar(node, node.tag.removeprefix(TAG))
    if value is None:
        raise _error("a key can't be null", node)
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _scalar(node: yaml.ScalarNode, tag: str) -> Any:
    text: str = node.value
    if tag in {"str", "timestamp", "merge"}:
        return _joined(text, node)
    value = plain_value(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise _error(f"{text} is a number that JSON can't say", node)
    if plain_tag(text) != node.tag and not (tag == "float" and isinstance(value, int) and not isinstance(value, bool)):
        raise _error(f"{text!r} is not of type {tag}", node)
    return value


def _joined(text: str, node: yaml.Node) -> str:
    r"""Return the text with surrogate pairs joined that JSON gave as `\ud83d\ude00`."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise _error("half of a character (a lone surrogate)", node) from error


def _error(problem: str, node: yaml.Node) -> ManifestError:
    return ManifestError(problem, node.start_mark.line + 1, node.start_mark.column + 1)


def _hint(text: str, line: int) -> str:
    """Return a hint where the line of an error, or the one above, holds template syntax."""
    lines = text.split("\n")[max(0, line - 2) : line]
    return _TEMPLATE_HINT if any("{{" in each for each in lines) else ""


def _jsonable(value: Any, path: str, depth: int, keep: tuple[type, ...]) -> Any:
    if value is None or isinstance(value, (bool, int, str, *keep)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return json_number(value)
    if not isinstance(value, Mapping | list | tuple):
        hint = " (in YAML, quote it)" if hasattr(value, "isoformat") else ""
        raise ManifestError(
            f"{path or 'the manifest'}: {value!r} is a {type(value).__name__}, which JSON can't say{hint}"
        )
    if depth > _DEEPEST:
        raise ManifestError(f"{path}: {_TOO_DEEP}")
    if not isinstance(value, Mapping):
        return [_jsonable(item, f"{path}[{position}]", depth + 1, keep) for position, item in enumerate(value)]
    copied = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise ManifestError(f"{path or 'the manifest'}: the key {key!r} is a {type(key).__name__}, not a string")
        copied[key] = _jsonable(item, f"{path}.{key}".lstrip("."), depth + 1, keep)
    return copied
