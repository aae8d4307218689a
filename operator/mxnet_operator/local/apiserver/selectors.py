"""Label and field selectors: parsing and matching."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import Resource
from mxnet_operator.local.apiserver.statuses import bad_request

Selector = Callable[[Object], bool]

_KEY = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_REQUIREMENT = re.compile(
    rf"""\s*(?:
        !\s*(?P<absent>{_KEY})
      | (?P<key>{_KEY})\s*(?:
            (?P<operator>==|=|!=)\s*(?P<value>{_VALUE})
          | \s(?P<set>in|notin)\s*\((?P<values>[^()]*)\)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)


def everything(_: Object) -> bool:
    """Match every object, as the empty selector does."""
    return True


def label_selector(text: str) -> Selector:
    """Parse a label selector such as `app=x,tier in (a,b),!gone`.

    Raises:
        StatusError: 400, where the text isn't one.
    """
    if not text.strip():
        return everything
    tests: list[Callable[[Mapping[str, str]], bool]] = []
    position = 0
    while position < len(text):
        match = _REQUIREMENT.match(text, position)
        if match is None:
            raise bad_request(f"unable to parse requirement: found '{text[position:]}', expected: a requirement")
        tests.append(_label_test(match))
        position = match.end()
    if text.rstrip().endswith(","):
        raise bad_request("unable to parse requirement: found '', expected: identifier after ','")

    def matches(obj: Object) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(test(labels) for test in tests)

    return matches


def _label_test(match: re.Match[str]) -> Callable[[Mapping[str, str]], bool]:
    if absent := match["absent"]:
        return lambda labels: absent not in labels
    key = match["key"]
    if match["set"]:
        values = {each.strip() for each in match["values"].split(",")}
        for each in values:
            if not re.fullmatch(_VALUE, each):
                raise bad_request(f"unable to parse requirement: invalid label value: {each!r}")
        if match["set"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    value = match["value"]
    match match["operator"]:
        case None:
            return lambda labels: key in labels
        case "!=":
            return lambda labels: labels.get(key) != value
        case _:
            return lambda labels: labels.get(key) == value


def field_selector(text: str, resource: Resource) -> Selector:
    """Parse a field selector such as `status.phase!=Running,metadata.name=a`.

    Raises:
        StatusError: 400, where the text isn't one or names a field that can't be selected by.
    """
    tests: list[tuple[str, bool, str]] = []
    for term in filter(None, re.split(r"(?<!\\),", text)):
        match = re.fullmatch(r"([^=!]+)(==|!=|=)(.*)", term, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path = match[1].strip()
        known = ("metadata.name", *(("metadata.namespace",) if resource.namespaced else ()), *resource.fields)
        if path not in known:
            raise bad_request(
                f"field label not supported: {path}"
                if resource.fields or resource.custom
                else f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
        tests.append((path, match[2] != "!=", re.sub(r"\\([\\,=])", r"\1", match[3])))
    if not tests:
        return everything
    return lambda obj: all((_field(obj, path) == value) is wanted for path, wanted, value in tests)


def _field(obj: Object, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else ("true" if value is True else "false" if value is False else str(value))
