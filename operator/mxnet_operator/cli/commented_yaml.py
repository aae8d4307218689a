"""YAML with a comment above each field that there is something to say of."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import yaml

from mxnet_operator.api.forms.conversion import Remark
from mxnet_operator.cli.manifests import line_of


def commented_yaml(content: Any, remarks: Iterable[Remark]) -> str:
    """The content in block style, without a final newline."""
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
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


class _Dumper(yaml.SafeDumper):
    """No anchors; numbers in a row, text of several lines as a block."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    numbers = bool(value) and all(isinstance(each, int) for each in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=numbers or None)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(list, _list)
_Dumper.add_representer(str, _text)
