"""YAML with comments above the fields that a conversion changed."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import yaml

from mxnet_operator.api.conversion import Remark
from mxnet_operator.api.manifest_text import Dumper, dump
from mxnet_operator.cli.manifests import line_of


def commented_yaml(content: Any, remarks: Iterable[Remark]) -> str:
    """Write the content in block style, each remark as a comment above its field, without a final newline."""
    text = dump(content, dumper=_Dumper, width=120)
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    above: dict[int, list[str]] = defaultdict(list)
    for remark in remarks:
        above[line_of(node, remark.path)].append(remark.text)
    lines = []
    for number, line in enumerate(text.rstrip("\n").split("\n")):
        indentation = line[: len(line) - len(line.lstrip(" "))]
        lines += [f"{indentation}# {said}" for said in above[number]]
        lines.append(line)
    return "\n".join(lines)


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
