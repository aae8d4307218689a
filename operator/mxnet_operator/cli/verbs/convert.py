"""`mxjob convert`: manifests of older API versions to kubeflow.org/v1, with comments on what changed."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from mxnet_operator.api import names
from mxnet_operator.api.conversion import Conversion
from mxnet_operator.api.conversion import convert as to_v1
from mxnet_operator.api.formats.format import Path
from mxnet_operator.api.manifest_text import Comment, Dumper, comments, dump
from mxnet_operator.cli.errors import Exit, UsageError, leave
from mxnet_operator.cli.manifests import (
    Document,
    Entry,
    FilesArgument,
    FilesOption,
    documents_in,
    entries,
    name_of,
    read_text,
    sources_given,
)
from mxnet_operator.cli.output.terminal import say, write_line
from mxnet_operator.cli.verbs.validate import mistakes

EXAMPLES = """
[bold]Examples[/]

  mxjob convert -f old.yaml >job.yaml

  kubectl get mxjobs.fioravanzo.org my-job -o yaml | mxjob convert -f -
"""
_SEPARATOR = re.compile(r"^---(?=\s|$)[^\S\n]*\n?", re.MULTILINE)


def convert(files: FilesArgument = None, more_files: FilesOption = None) -> None:
    """Convert job manifests of any older API version to kubeflow.org/v1, on standard output.

    A comment above each changed field says what it was, and the comments of the manifest stay. Documents that are v1
    already, or that are not jobs, are printed unchanged: converting twice changes nothing. If any manifest has a
    mistake, prints none and exits with 2.
    """
    printed: list[str] = []
    empty = True
    found: list[str] = []
    sources = sources_given(files, more_files, "mxjob convert -f old.yaml")
    for source in sources:
        for part in _parts(read_text(source)):
            documents = documents_in(part, name_of(source))
            empty = empty and not documents
            for document in (each for each in documents if each.is_job):
                content = document.content
                if isinstance(content, dict):  # a status isn't converted
                    content = {name: value for name, value in content.items() if name != "status"}
                found += mistakes(replace(document, content=content))
            if not found:
                printed += _converted(part, documents)
    if found:
        for mistake in found:
            say(mistake)
        leave(Exit.USAGE)
    if empty:
        names = ", ".join(map(name_of, sources))
        raise UsageError(f"{names}: empty; expected an MXJob manifest")
    write_line("\n---\n".join(printed))


def _parts(text: str) -> Iterator[str]:
    """Yield the documents of a text with the comments around them, each padded to its line numbers in the text."""
    start = 0
    for separator in (*_SEPARATOR.finditer(text), None):
        end = separator.start() if separator else len(text)
        if text[start:end].strip():
            yield "\n" * text.count("\n", 0, start) + text[start:end]
        start = separator.end() if separator else end


def _converted(part: str, documents: list[Document]) -> Iterator[str]:
    conversions = [to_v1(document.content) if document.is_job else None for document in documents]
    if not any(conversions):
        yield part.strip("\n")
        return
    left = comments(part)
    for document, conversion in zip(documents, conversions, strict=True):
        is_last = document is documents[-1]
        end = max((each.line for each in entries(document.node)), default=document.node.start_mark.line)
        own = [each for each in left if is_last or each.line <= end]
        left = left[len(own) :]
        yield _commented(document, conversion, own)


def _commented(document: Document, conversion: Conversion | None, own: Iterable[Comment]) -> str:
    """Write a document in block style, without a final newline, with its own comments and those on the changes.

    A comment stays with its field, also where the conversion moved the field. The comment of a field that v1 lacks
    stands above the nearest field around it, and names the field.
    """
    content = conversion.manifest if conversion else document.content
    text = dump(content, dumper=_Dumper, width=120)
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    lines = text.rstrip("\n").split("\n")
    written = {each.path: each for each in entries(root)}
    above: dict[int, list[str]] = defaultdict(list)
    fields = list(entries(document.node))
    for comment in own:
        source = _field_of(comment, fields)
        if source is None:
            above[len(lines)].append(comment.text)
            continue
        place = _in_v1(source, document.content, content)
        entry = _nearest(place, written)
        if entry.path != place:
            above[entry.line].append(f"# {'.'.join(place[len(entry.path) :])}: {comment.text.lstrip('# ')}")
        elif comment.own_line or not _ends_with_its_line(entry):
            above[entry.line].append(comment.text)
        else:
            lines[entry.line] += f"  {comment.text}"
    for remark in conversion.remarks if conversion else ():
        above[_nearest(remark.path, written).line].append(f"# {remark.text}")
    commented = []
    for number, line in enumerate(lines):
        indentation = line[: len(line) - len(line.lstrip(" "))]
        commented += [f"{indentation}{said}" for said in above[number]]
        commented.append(line)
    return "\n".join([*commented, *above[len(lines)]])


def _field_of(comment: Comment, fields: list[Entry]) -> Path | None:
    """Return the field that a comment is on: that of its line, else the next one; None after the last."""
    if comment.own_line:
        return next((each.path for each in fields if each.line > comment.line), None)
    line = max((each.line for each in fields if each.line <= comment.line), default=0)
    there = [each for each in fields if each.line == line]
    # Of `- name: x  # why`, the field and not the item.
    found = [each for each in there if not (each.path[-1].isdigit() and isinstance(each.value, yaml.MappingNode))]
    return next((each.path for each in found or there), None)


def _in_v1(path: Path, source: Any, content: Any) -> Path:
    """Return where a field of a manifest stands in what it was converted to, if it stands there."""
    if path[0] != "spec" or len(path) == 1 or source is content:
        return path
    spec = source["spec"]
    replicas = spec.get("replicaSpecs") or spec["mxReplicaSpecs"]
    if path[1] in {"replicaSpecs", "mxReplicaSpecs"} and len(path) > 2:
        named = (
            {key: key for key in replicas}
            if isinstance(replicas, Mapping)
            else {str(position): entry.get("mxReplicaType") or "" for position, entry in enumerate(replicas)}
        )
        types = {key: names.canonical_type(name) for key, name in named.items()}
        unnamed = next((each for each in content["spec"]["mxReplicaSpecs"] if each not in types.values()), None)
        replica_type = types.get(path[2]) or unnamed
        path = ("spec", "mxReplicaSpecs", replica_type or path[2], *path[3:])
        return (*path[:3], "restartPolicy") if path[3:] == ("template", "spec", "restartPolicy") else path
    moved = {"replicaSpecs": ("mxReplicaSpecs",), "cleanupPodPolicy": ("runPolicy", "cleanPodPolicy")}
    if path[1] in (content["spec"].get("runPolicy") or {}):
        return ("spec", "runPolicy", *path[1:])
    return ("spec", *moved.get(path[1], path[1:2]), *path[2:])


def _nearest(path: Path, written: Mapping[Path, Entry]) -> Entry:
    return next(
        (written[path[:end]] for end in range(len(path), 0, -1) if path[:end] in written), next(iter(written.values()))
    )


def _ends_with_its_line(entry: Entry) -> bool:
    """Return whether a comment may follow a field's first line: unless its value is a text that goes on there."""
    value = entry.value
    return not isinstance(value, yaml.ScalarNode) or value.style == "|" or value.end_mark.line == entry.line


class _Dumper(Dumper):
    """YAML dumper without anchors: lists of numbers on one line, multi-line text as a block."""

    def style_of(self, value: str) -> str | None:
        return "|" if "\n" in value else None

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    numbers = bool(value) and all(isinstance(each, int) for each in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=numbers or None)


_Dumper.add_representer(list, _list)
