"""An MXJob's manifest as the text of a resource template: YAML, with Argo's tags where values are filled in."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from mxnet_argo.values import Value, literal_json
from mxnet_operator.api.manifest_text import dump

_TAG = "{{"
_DOLLAR = "$"
_TOKEN = re.compile("mxnet-argo-value-[0-9]+-")
_LONG = 100
"""Characters of a tag that is written once in a manifest."""


def render(manifest: Mapping[str, Any]) -> str:
    """Return the manifest as YAML.

    Raises:
        ValueError: a literal has `{{` in it, which Argo would take for a tag.
    """
    for path, leaf in leaves(manifest):
        if isinstance(leaf, str) and _TAG in leaf:
            raise ValueError(
                f"{path}: {leaf!r} has {_TAG!r} in it, which Argo would replace by text as it is: use"
                " mxnet_argo.text(), integer(), data() or expression(), joined with + to what stands around it"
            )
    tags: dict[str, str] = {}

    def written(value: Value | str) -> str:
        if isinstance(value, str) and _DOLLAR not in value:
            return value
        token = f"mxnet-argo-value-{len(tags)}-"  # as _TOKEN has it
        tags[token] = value.tag if isinstance(value, Value) else literal_json(value)
        return token

    return _with_anchors(dump(_mapped(manifest, written), width=10_000), tags)


def _with_anchors(text: str, tags: Mapping[str, str]) -> str:
    """Return the YAML with tags for tokens: a long one once, under an anchor, and then by its alias."""
    times = Counter(tags.values())
    anchors: dict[str, str] = {}

    def filled_in(found: re.Match[str]) -> str:
        tag = tags[found[0]]
        if times[tag] == 1 or len(tag) < _LONG:
            return tag
        if tag in anchors:
            return f"*{anchors[tag]}"
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        word = re.sub("[^A-Za-z0-9]", "", line) or "item"
        taken = sum(name.rstrip("0123456789") == word for name in anchors.values())
        anchors[tag] = f"{word}{taken + 1}" if taken else word
        return f"&{anchors[tag]} {tag}"

    return _TOKEN.sub(filled_in, text)


def sampled(manifest: Mapping[str, Any], samples: Mapping[str, str], given: Collection[str] = ()) -> dict[str, Any]:
    """Return the manifest as it would be with these texts for parameters, and examples for values not known by them.

    `given` are those parameters that somebody has set: of several that a value is made of, these are named.

    Raises:
        ValueError: a text isn't what its place takes.
    """

    def sample(value: Value | str) -> Any:
        if isinstance(value, str):
            return value
        try:
            text = value.known_text(samples)
            return value.kind.parse(value.kind.example if text is None else text)
        except ValueError as error:
            known = [name for name in sorted(value.parameters) if name in samples]
            raise ValueError(f"input {', '.join(blamed(known, given))}: {error}") from error

    result: dict[str, Any] = json.loads(json.dumps(_mapped(manifest, sample)))
    return result


def blamed(parameters: Sequence[str], given: Collection[str]) -> Sequence[str]:
    """Return the parameters that somebody has set; all of them where nobody has."""
    return [name for name in parameters if name in given] or parameters


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a manifest that is neither a mapping nor a list, with its path; keys are among them."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield f"{path} (key)".lstrip(), key
            yield from leaves(value, f"{path}.{key}".lstrip("."))
    elif isinstance(node, list | tuple):
        for index, value in enumerate(node):
            yield from leaves(value, f"{path}[{index}]")
    else:
        yield path, node


def _mapped(node: Any, replace: Callable[[Value | str], Any]) -> Any:
    if isinstance(node, Value | str):
        return replace(node)
    if isinstance(node, Mapping):
        return {key: _mapped(value, replace) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_mapped(value, replace) for value in node]
    return node
