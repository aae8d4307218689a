"""ConfigMaps and Secrets: objects of keys and values, to which variables and volumes of a pod refer."""

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mxnet_operator.kube.client import Client
from mxnet_operator.kube.resources import CONFIGMAPS, SECRETS, Resource


def _bytes_of(values: Mapping[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (values or {}).items()}


def _texts_of_config_map(obj: Mapping[str, Any]) -> dict[str, bytes]:
    return {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}


def _files_of_config_map(obj: Mapping[str, Any]) -> dict[str, bytes]:
    return _texts_of_config_map(obj) | _bytes_of(obj.get("binaryData"))


def _of_secret(obj: Mapping[str, Any]) -> dict[str, bytes]:
    return _bytes_of(obj.get("data"))


@dataclass(frozen=True, slots=True)
class KeyedKind:
    """Kind of such objects, with the field names of the references to it."""

    resource: Resource
    kind: str
    key_reference: str
    """Of a variable: to one key."""
    reference: str
    """Of a container's `envFrom`: to all keys."""
    volume: str
    """Of a volume, or of a part of a projected one."""
    name_field: str
    """Of the object in a volume; in a projected one it is `name` always."""
    key_words: str
    variables: Callable[[Mapping[str, Any]], dict[str, bytes]]
    """What variables can refer to, by key."""
    files: Callable[[Mapping[str, Any]], dict[str, bytes]]
    """What a volume has, by key."""

    @property
    def singular(self) -> str:
        """Name of one object in messages: `configmap`."""
        return self.kind.lower()


CONFIG_MAP: Final = KeyedKind(
    CONFIGMAPS,
    "ConfigMap",
    "configMapKeyRef",
    "configMapRef",
    "configMap",
    "name",
    "config",
    _texts_of_config_map,
    _files_of_config_map,
)
SECRET: Final = KeyedKind(
    SECRETS, "Secret", "secretKeyRef", "secretRef", "secret", "secretName", "secret", _of_secret, _of_secret
)
KEYED_KINDS: Final = (CONFIG_MAP, SECRET)

Reference = tuple[KeyedKind, str]
"""Kind and name of an object in the pod's namespace."""
KeyedObjects = Mapping[Reference, Mapping[str, Any]]
"""Data of the objects that exist."""


async def fetch_keyed_objects(client: Client, namespace: str, references: Iterable[Reference]) -> KeyedObjects:
    """Fetch those of the referred objects that exist.

    Raises:
        KubeError: the request fails.
    """
    found: dict[Reference, Mapping[str, Any]] = {}
    for kind, name in sorted(set(references), key=lambda each: (each[0].kind, each[1])):
        if (obj := await client.find(kind.resource.path(namespace, name))) is not None:
            found[kind, name] = obj
    return found
