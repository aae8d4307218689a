"""JSONPath of printer columns: fields, indexes, slices, and filters by equality.

As in https://kubernetes.io/docs/reference/kubectl/jsonpath/, without unions, recursion and functions.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

_Step = Callable[[list[Any]], list[Any]]

_TOKEN = re.compile(
    r"""\.?(?:
        (?P<field>(?:\\.|[^.\[\]\\])+)
      | \[\s*(?:
            '(?P<quoted>[^']*)'
          | (?P<index>-?\d+)
          | (?P<start>-?\d*):(?P<stop>-?\d*)
          | (?P<all>\*)
          | \?\(\s*@\.(?P<key>[\w.]+)\s*==\s*["'](?P<value>[^"']*)["']\s*\)
        )\s*\]
    )""",
    re.VERBOSE,
)


def find(path: str, value: Any) -> list[Any]:
    """Find every value at `path` (`.status.conditions[-1:].type`); none where a step is missing."""
    found = [value]
    for step in _steps(path):
        found = step(found)
    return found


@functools.lru_cache(maxsize=256)
def _steps(path: str) -> tuple[_Step, ...]:
    steps: list[_Step] = []
    position = 0
    while position < len(path):
        match = _TOKEN.match(path, position)
        if match is None:
            return (lambda _: [],)
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> _Step:
    if (index := match["index"]) is not None:
        at = int(index)
        return lambda values: [each[at] for each in _lists(values) if -len(each) <= at < len(each)]
    if match["start"] is not None:
        bounds = slice(*(int(bound) if bound else None for bound in (match["start"], match["stop"])))
        return lambda values: [item for each in _lists(values) for item in each[bounds]]
    if match["all"]:
        return lambda values: [item for each in values for item in _items(each)]
    if (key := match["key"]) is not None:
        wanted = match["value"]
        return lambda values: [
            item for each in values for item in _items(each) if str(_field(item, key.split("."))) == wanted
        ]
    name = match["quoted"]
    if name is None:
        name = re.sub(r"\\(.)", r"\1", match["field"])
        if name == "*":
            return lambda values: [item for each in values for item in _items(each)]
    return lambda values: [each[name] for each in values if isinstance(each, dict) and each.get(name) is not None]


def _lists(values: list[Any]) -> list[list[Any]]:
    return [each for each in values if isinstance(each, list)]


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _field(value: Any, path: list[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
