"""The environment variables of a container as its spec asks for them, the way the real kubelet makes them."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mxnet_operator.local.quantities import container_requests, quantity

_REFERENCE = re.compile(r"\$\$|\$\(([^()\s]+)\)")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")

ConfigMaps = Mapping[str, Mapping[str, Any]]
"""The ConfigMaps of the pod's namespace that exist, by name."""


class ConfigError(Exception):
    """A container's spec asks for something that isn't there, or that the local cluster doesn't have."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable; `literal` says that its value was written out in the manifest, not referred to."""

    value: str
    literal: bool


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value; an unknown name stays, and $$ is one $ (kubelet's third_party/expansion)."""

    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return values.get(match[1], match[0])

    return _REFERENCE.sub(replacement, text)


def config_maps_needed(container: Mapping[str, Any]) -> set[str]:
    """The names of the ConfigMaps that a container's environment refers to."""
    sources = [each.get("valueFrom") or {} for each in container.get("env") or []]
    named = [each.get("configMapKeyRef") for each in sources]
    named += [each.get("configMapRef") for each in container.get("envFrom") or []]
    return {each["name"] for each in named if each and each.get("name")}


def variables(pod: Mapping[str, Any], container: Mapping[str, Any], config_maps: ConfigMaps) -> dict[str, Variable]:
    """The container's variables in the order of their definition, not expanded yet.

    Raises:
        ConfigError: a reference can't be followed; the message is for the pod's author.
    """
    result: dict[str, Variable] = {}
    for source in container.get("envFrom") or []:
        for name, value in _all_of(source, config_maps).items():
            result[name] = Variable(value, literal=False)
    for entry in container.get("env") or []:
        reference = entry.get("valueFrom")
        if not reference:
            result[entry["name"]] = Variable(entry.get("value") or "", literal=True)
            continue
        found = _referred(pod, container, reference, config_maps)
        if found is not None:
            result[entry["name"]] = Variable(found, literal=False)
    return result


def _all_of(source: Mapping[str, Any], config_maps: ConfigMaps) -> dict[str, str]:
    reference = source.get("configMapRef")
    if reference is None:
        if (source.get("secretRef") or {}).get("optional"):
            return {}
        raise ConfigError("envFrom: the local cluster has ConfigMaps, but no Secrets")
    config_map = config_maps.get(reference["name"])
    if config_map is None:
        if reference.get("optional"):
            return {}
        raise ConfigError(f'configmap "{reference["name"]}" not found')
    prefix = source.get("prefix") or ""
    named = {prefix + key: str(value) for key, value in (config_map.get("data") or {}).items()}
    return {name: value for name, value in named.items() if _NAME.fullmatch(name)}


def _referred(
    pod: Mapping[str, Any], container: Mapping[str, Any], reference: Mapping[str, Any], config_maps: ConfigMaps
) -> str | None:
    if field := reference.get("fieldRef"):
        return _field(pod, field.get("fieldPath") or "")
    if resource := reference.get("resourceFieldRef"):
        return _resource(pod, container, resource)
    if key := reference.get("configMapKeyRef"):
        data = (config_maps.get(key["name"]) or {}).get("data") or {}
        if key["key"] in data:
            return str(data[key["key"]])
        if key.get("optional"):
            return None
        if key["name"] not in config_maps:
            raise ConfigError(f'configmap "{key["name"]}" not found')
        raise ConfigError(f"couldn't find key {key['key']} in ConfigMap {pod['metadata']['namespace']}/{key['name']}")
    if (reference.get("secretKeyRef") or {}).get("optional"):
        return None
    kind = next(iter(reference), "valueFrom")
    raise ConfigError(f"valueFrom.{kind}: the local cluster knows fieldRef, resourceFieldRef and configMapKeyRef only")


def _field(pod: Mapping[str, Any], path: str) -> str:
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


def _resource(pod: Mapping[str, Any], container: Mapping[str, Any], reference: Mapping[str, Any]) -> str:
    named = reference.get("containerName")
    if named:
        container = next((each for each in pod["spec"]["containers"] if each["name"] == named), container)
    kind, _, resource = str(reference.get("resource") or "").partition(".")
    limits = (container.get("resources") or {}).get("limits") or {}
    if kind == "limits" and resource in limits:
        amount = quantity(limits[resource])
    elif kind == "requests" and resource in (requests := container_requests(container)):
        amount = requests[resource]
    else:
        raise ConfigError(f"resourceFieldRef: container {container['name']} sets no {reference.get('resource')}")
    divisor = quantity(reference.get("divisor") or "1") or quantity(1)
    return str(math.ceil(amount / divisor))
