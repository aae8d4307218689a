"""Checks of a description: every mistake with its path, the value, and what is expected."""

import difflib
import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any, Final, Literal, get_args, get_origin

from mxnet_operator.api.structural import FieldError
from mxnet_operator.description.plain import DEEPEST, plain
from mxnet_operator.description.pods import ROLES, Number, Object, Objects, Placeholder, Role, Seconds, Text, Texts

Later = Callable[[Any], bool]
"""Predicate of values that are filled in later, so that they can't be checked yet."""
Check = Callable[[str, Any, Later], Iterator[FieldError]]

SECONDS: Final = frozenset({"ttl_seconds_after_finished", "active_deadline_seconds", "progress_deadline_seconds"})
COUNTS: Final = frozenset({*ROLES, "gpus_per_worker", "backoff_limit"})
_IN_ITEMS: Final = "can't be filled in whole: give its items values"
_TAKEN_APART: Final = {
    **dict.fromkeys(("secrets", "config_maps", "labels", "annotations", "run_policy"), _IN_ITEMS),
    "gpu_resource": "can't be filled in later, since it is a key of the limits: write the name",
}
"""Fields whose items become others of the manifest, so that a framework can't fill in all of one."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
REPLICA_SPEC: Final = frozenset({"restartPolicy", "template"})
"""Fields of a ReplicaSpec that a Role doesn't have."""


class DescriptionError(ValueError):
    """Invalid description of a job; `problems` has every mistake, with its path."""

    def __init__(self, problems: Sequence[FieldError]) -> None:
        super().__init__("; ".join(each.message for each in problems))
        self.problems = tuple(problems)


def unknown_names(given: Iterable[str], known: Iterable[str], what: str) -> Iterator[FieldError]:
    """Yield a mistake for each unknown name, with the name that was probably meant."""
    by_lower = {each.lower(): each for each in known}
    for name in given:
        if name not in by_lower.values():
            near = difflib.get_close_matches(str(name).lower(), by_lower, n=1)
            instead = f"did you mean {by_lower[near[0]]}?" if near else f"it is one of {', '.join(by_lower.values())}"
            yield _error(what, f"there is no {name!r}: {instead}")


def role_of(role: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a role into the fields of `Role` that it gives, and the fields that only a ReplicaSpec has.

    A number stands for the role's replicas; None gives nothing.
    """
    if isinstance(role, Role):
        return plain(given_fields(role)), {}
    if not isinstance(role, Mapping):
        return ({} if role is None else {"replicas": role}), {}
    own = {name: plain(each) for name, each in role.items() if name not in REPLICA_SPEC and each is not None}
    return own, {name: each for name, each in role.items() if name in REPLICA_SPEC}


def given_fields(description: Any) -> dict[str, Any]:
    said = ((each.name, getattr(description, each.name)) for each in fields(description) if each.init)
    return {name: value for name, value in said if value is not None}


def field_problems(
    given: Mapping[str, Any], checks: Mapping[str, Check], later: Later, path: str = ""
) -> Iterator[FieldError]:
    """Yield every mistake in fields that are given, in the order of the checks; None stands for one that isn't.

    `later` tells which values can't be checked yet.
    """
    for name, check in checks.items():
        value = given.get(name)
        if isinstance(value, Placeholder) and name in _TAKEN_APART:
            yield _error(f"{path}{name}", _TAKEN_APART[name])
        elif value is not None and not later(value):
            found = list(check(f"{path}{name}", value, later))
            yield from found or (() if name in SECONDS else _json(f"{path}{name}", value, later))
    if isinstance(given.get("env_from"), Placeholder) and (given.get("secrets") or given.get("config_maps")):
        yield _error(f"{path}env_from", f"beside secrets and config_maps it {_IN_ITEMS}")


def _json(path: str, value: Any, later: Later, depth: int = 0) -> Iterator[FieldError]:
    """Yield a mistake for everything that JSON can't say; a role's fields have been looked through already."""
    if depth > DEEPEST:
        yield _error(path, f"nested deeper than {DEEPEST} levels")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if not isinstance(key, str) and not (path.endswith("env") and later(key)):
                yield _error(path, f"its keys must be strings, one is {_named(key)}{_as_text(key)}")
            else:
                yield from _json(path, key, later, depth + 1)
                yield from _json(f"{path}.{key}", each, later, depth + 1)
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _json(f"{path}[{index}]", each, later, depth + 1)
    elif isinstance(value, str):
        if _SURROGATE.search(value):  # Python has them for bytes of a command line or file that are no UTF-8
            yield _error(path, f"isn't UTF-8: {value!r}")
    elif isinstance(value, float) and not math.isfinite(value):
        yield _error(path, f"must be a number that JSON can say, is {value}")
    elif not (value is None or isinstance(value, int | float | Role) or later(value)):
        yield _error(path, f"must be what JSON can say, is {value!r}, {_named(value)}")


def _text(path: str, value: Any, later: Later) -> Iterator[FieldError]:
    if later(value):
        return
    if not isinstance(value, str):
        yield _error(path, f"must be a string, is {_named(value)}{_as_text(value)}")


def _list_of(what: str, check_item: Check) -> Check:
    def check(path: str, value: Any, later: Later) -> Iterator[FieldError]:
        if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
            hint = ""
            if isinstance(value, str) and what == "strings":
                hint = f": write {_as_list(value)}"
            elif isinstance(value, Mapping) and what == "mappings":
                hint = ": put it in [ ]"
            yield _error(path, f"must be a list of {what}, is {_named(value)}{hint}")
            return
        for index, each in enumerate(value):
            yield from check_item(f"{path}[{index}]", each, later)

    return check


def _text_map(path: str, value: Any, later: Later) -> Iterator[FieldError]:
    if not isinstance(value, Mapping):
        yield _error(path, f"must map strings to strings, is {_named(value)}")
        return
    for key, each in value.items():
        yield from _text(f"{path}.{key}", each, later)


def _env(path: str, value: Any, later: Later) -> Iterator[FieldError]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            if not isinstance(each, Mapping):
                yield from _text(f"{path}.{name}", each, later)
        return
    if isinstance(value, str) or not isinstance(value, Sequence):
        yield _error(path, f"must map names to values, or be a list of EnvVars, is {_named(value)}")
        return
    for index, each in enumerate(value):
        if later(each):
            continue
        if not isinstance(each, Mapping):
            yield _error(f"{path}[{index}]", f"must be an EnvVar (name, value), is {_named(each)}")
        elif "valueFrom" not in each:
            yield from _text(f"{path}[{index}].value", each.get("value", ""), later)


def _object(path: str, value: Any, later: Later) -> Iterator[FieldError]:
    if not later(value) and not isinstance(value, Mapping):
        yield _error(path, f"must be a mapping, is {_named(value)}")


def _objects_by(key: str) -> Check:
    """Check a list of mappings that Kubernetes tells apart by this key: merging would make one of two."""

    def check(path: str, value: Any, later: Later) -> Iterator[FieldError]:
        found = list(_objects(path, value, later))
        yield from found
        first: dict[str, int] = {}
        for index, each in enumerate(() if found or later(value) else value):
            name = each.get(key) if isinstance(each, Mapping) else None
            if isinstance(name, str) and not later(name) and first.setdefault(name, index) != index:
                yield _error(f"{path}[{index}].{key}", f"is {name!r}, as is that of {path}[{first[name]}]")

    return check


def _reference(path: str, value: Any, later: Later) -> Iterator[FieldError]:
    if not isinstance(value, Mapping):
        yield from _text(path, value, later)


def _count(path: str, value: Any, later: Later) -> Iterator[FieldError]:
    if later(value) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return
    yield _error(path, f"must be a whole number from 0 on, is {_named(value)}")


def _seconds(path: str, value: Any, _: Later) -> Iterator[FieldError]:
    if isinstance(value, timedelta):
        if value < timedelta():
            yield _error(path, f"must not be negative, is {value}")
    elif not isinstance(value, int) or isinstance(value, bool) or value < 0:
        yield _error(path, f"must be a whole number of seconds, or a timedelta, is {_named(value)}")


def _role(path: str, value: Any, later: Later) -> Iterator[FieldError]:
    if not isinstance(value, Mapping | Role):
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return
        yield _error(path, f"must be a whole number from 0 on, a Role or a ReplicaSpec, is {_named(value)}")
        return
    if isinstance(value, Mapping):
        yield from unknown_names(value, [*_ROLE_CHECKS, *sorted(REPLICA_SPEC)], path)
    own, _ = role_of(value)
    yield from field_problems(own, _ROLE_CHECKS, later, f"{path}.")


def _one_of(*choices: str) -> Check:
    def check(path: str, value: Any, later: Later) -> Iterator[FieldError]:
        if not later(value) and value not in choices:
            near = difflib.get_close_matches(str(value), choices, n=1, cutoff=0.5)
            hint = f": did you mean {near[0]}?" if near else ""
            yield _error(path, f"must be one of {', '.join(choices)}, is {_named(value)}{hint}")

    return check


def _error(path: str, detail: str) -> FieldError:
    path, detail = (each.encode("utf-8", "backslashreplace").decode() for each in (path, detail))
    return FieldError(path, "FieldValueInvalid", detail)


def _named(value: Any) -> str:
    if value is None:
        return "None"
    for kind, name in ((bool, "boolean"), (int | float, "number"), (str, "string"), (Mapping, "mapping")):
        if isinstance(value, kind):
            shown = "" if kind is Mapping else f" {value!r}"
            return f"the {name}{shown}"
    return f"a list: {value!r}" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def _as_text(value: Any) -> str:
    if value is None:
        return ': leave it out, or write ""'
    if isinstance(value, bool):
        return f': write "{str(value).lower()}" or "{int(value)}"'
    return f": write {json.dumps(str(value))}" if isinstance(value, int | float) else ""


def _as_list(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError:
        words = [text]
    return json.dumps(words, ensure_ascii=False)


_objects = _list_of("mappings", _object)
_BY_TYPE: Final[dict[Any, Check]] = {
    str | None: _text,
    Text | None: _text,
    Texts | None: _list_of("strings", _text),
    Number | None: _count,
    Seconds | None: _seconds,
    Object | None: _object,
    Objects | None: _objects,
    Mapping[str, Any] | None: _object,
    Mapping[str, Text] | None: _text_map,
    Mapping[str, Text] | Placeholder | None: _text_map,
    Number | Role | Mapping[str, Any] | None: _role,
}
_BY_NAME: Final[dict[str, Check]] = {
    "env": _env,
    "volumes": _objects_by("name"),
    "volume_mounts": _objects_by("mountPath"),
    "image_pull_secrets": _list_of("strings", _reference),
    "init_containers": _objects_by("name"),
}
"""Checks of fields whose types say less than Kubernetes asks for."""


def checks_of(kind: Any) -> dict[str, Check]:
    """Return the check of each field of a description, in their order."""
    return {each.name: _BY_NAME.get(each.name) or _check_of(each.type) for each in fields(kind)}


def _check_of(annotation: Any) -> Check:
    choices = next((get_args(each) for each in get_args(annotation) if get_origin(each) is Literal), ())
    if choices:
        return _one_of(*choices)
    if annotation not in _BY_TYPE:
        raise TypeError(f"A field of the description is of type {annotation}, which _BY_TYPE has no check for.")
    return _BY_TYPE[annotation]


_ROLE_CHECKS: Final = checks_of(Role)
