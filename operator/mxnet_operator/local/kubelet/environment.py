"""Environment variables of a container from its spec, as the real kubelet builds them."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mxnet_operator.local.apiserver.keyed_objects import KEYED_KINDS, KeyedObjects, Reference

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


class ConfigError(Exception):
    """A container's spec refers to an object that doesn't exist, or uses an unsupported feature."""


@dataclass(frozen=True, slots=True)
class Variable:
    """Environment variable; `literal` tells that its value is in the manifest, not from a reference."""

    value: str
    literal: bool


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value; an unknown name stays, and $$ is one $ (kubelet's third_party/expansion)."""

    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return values.get(match[1], match[0])

    return _REFERENCE.sub(replacement, text)


def expand_fully(text: str, values: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value, where each has to have one (kubelet's ExpandContainerVolumeMounts).

    Raises:
        ConfigError: one is unknown or empty.
    """
    names = {match[1] for match in _REFERENCE.finditer(text) if match[0] != "$$"}
    if missing := sorted(name for name in names if not values.get(name)):
        raise ConfigError(f"missing value for {', '.join(missing)}")
    return expand(text, values)


def references(container: Mapping[str, Any]) -> set[Reference]:
    variables = [each.get("valueFrom") or {} for each in container.get("env") or []]
    sources = container.get("envFrom") or []
    found = [(kind, each.get(kind.key_reference)) for kind in KEYED_KINDS for each in variables]
    found += [(kind, each.get(kind.reference)) for kind in KEYED_KINDS for each in sources]
    return {(kind, each["name"]) for kind, each in found if each and each.get("name")}


def variables(
    pod: Mapping[str, Any], container: Mapping[str, Any], objects: KeyedObjects
) -> list[tuple[str, Variable]]:
    """Build the container's variables in the order of their definition, not expanded yet.

    A later one replaces an earlier one of its name, which it may refer to.

    Raises:
        ConfigError: a reference can't be resolved; the message is for the pod's author.
    """
    result = [
        (name, Variable(value, literal=False))
        for source in container.get("envFrom") or []
        for name, value in _all_of(source, objects).items()
    ]
    for entry in container.get("env") or []:
        reference = entry.get("valueFrom")
        if not reference:
            result.append((entry["name"], Variable(entry.get("value") or "", literal=True)))
        elif (found := _referred(pod, reference, objects)) is not None:
            result.append((entry["name"], Variable(found, literal=False)))
    return result


def _all_of(source: Mapping[str, Any], objects: KeyedObjects) -> dict[str, str]:
    for kind in KEYED_KINDS:
        if (reference := source.get(kind.reference)) is None:
            continue
        obj = objects.get((kind, reference["name"]))
        if obj is None:
            if reference.get("optional"):
                return {}
            raise ConfigError(f'{kind.singular} "{reference["name"]}" not found')
        prefix = source.get("prefix") or ""
        named = {prefix + key: _text(value) for key, value in kind.variables(obj).items()}
        return {name: value for name, value in named.items() if _NAME.fullmatch(name)}
    raise ConfigError("envFrom: neither configMapRef nor secretRef is set")


def _referred(pod: Mapping[str, Any], reference: Mapping[str, Any], objects: KeyedObjects) -> str | None:
    if field := reference.get("fieldRef"):
        return _field_text(pod, field.get("fieldPath") or "")
    for kind in KEYED_KINDS:
        if not (key := reference.get(kind.key_reference)):
            continue
        obj = objects.get((kind, key["name"]))
        values = {} if obj is None else kind.variables(obj)
        if key["key"] in values:
            return _text(values[key["key"]])
        if key.get("optional"):
            return None
        if obj is None:
            raise ConfigError(f'{kind.singular} "{key["name"]}" not found')
        where = f"{kind.kind} {pod['metadata']['namespace']}/{key['name']}"
        raise ConfigError(f"couldn't find key {key['key']} in {where}")
    source = next(iter(reference), "valueFrom")
    raise ConfigError(f"valueFrom.{source}: the local cluster doesn't support this source")


def _text(value: bytes) -> str:
    """Return the text of a variable, which may be any bytes but NUL."""
    return os.fsdecode(value)


def _field_text(pod: Mapping[str, Any], path: str) -> str:
    """Return the value of a pod's field."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    if match := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    known = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName"),
        "status.podIP": status.get("podIP"),
        "status.podIPs": status.get("podIP"),
        "status.hostIP": status.get("hostIP"),
        "status.hostIPs": status.get("hostIP"),
    }
    if path not in known:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return str(known[path] or "")
