"""YAML with the comments that its source had, and comments above the fields that a conversion changed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from mxnet_operator.api import names
from mxnet_operator.api.conversion import Conversion
from mxnet_operator.api.formats.format import Path
from mxnet_operator.api.manifest_text import Comment, Dumper, dump
from mxnet_operator.cli.manifests import Document, Entry, entries


def commented_yaml(document: Document, conversion: Conversion | None, comments: Iterable[Comment]) -> str:
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
    for comment in comments:
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


def last_line(document: Document) -> int:
    """Return the line (from 0) on which the last field of a document begins."""
    return max((each.line for each in entries(document.node)), default=document.node.start_mark.line)


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
