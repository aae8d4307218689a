"""ConfigMaps and Secrets: kube-apiserver's rules for them, and how variables and volumes of a pod read them.

The words are those of kubernetes/pkg/apis/core/validation and of the strategies in pkg/registry/core, 1.36.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.kube import resources as kube
from mxnet_operator.kube.client import Client
from mxnet_operator.local.apiserver.json_values import Object, fill

_KEY_RULE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST_KEY: Final = 253
_OPAQUE: Final = "Opaque"


def fill_in_secret(secret: Object) -> None:
    """Move `stringData` into `data`, and set the default type, in place."""
    texts = secret.pop("stringData", None) or {}
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}
    fill(secret, "type", _OPAQUE)


def keyed_errors(obj: Object) -> Iterator[FieldError]:
    """Validate the keys of a ConfigMap or Secret, which become names of files."""
    for field in ("data", "binaryData"):
        for key in obj.get(field) or ():
            for rule in broken_key_rules(key):
                yield invalid(f"{field}[{key}]", key, rule)


def broken_key_rules(key: str) -> Iterator[str]:
    if len(key) > _LONGEST_KEY:
        yield f"must be no more than {_LONGEST_KEY} characters"
    if not _KEY.fullmatch(key):
        yield _KEY_RULE
    if key in (".", ".."):
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


@dataclass(frozen=True, slots=True)
class KeyedKind:
    """Kind of such objects, with the field names of the references to it."""

    resource: kube.Resource
    kind: str
    key_reference: str
    """Of a variable: to one key."""
    reference: str
    """Of a container's `envFrom`: to all keys."""
    volume: str
    """Of a volume."""
    name_field: str
    """Of the object in a volume."""
    key_words: str

    @property
    def singular(self) -> str:
        """Name of one object in messages: `configmap`."""
        return self.kind.lower()

    def variables(self, obj: Mapping[str, Any]) -> dict[str, bytes]:
        """Return what variables can refer to, by key."""
        data: Mapping[str, str] = obj.get("data") or {}
        return {key: base64.b64decode(each) if self is SECRET else each.encode() for key, each in data.items()}

    def files(self, obj: Mapping[str, Any]) -> dict[str, bytes]:
        """Return what a volume has, by key."""
        binary: Mapping[str, str] = obj.get("binaryData") or {}
        return self.variables(obj) | {key: base64.b64decode(each) for key, each in binary.items()}


CONFIG_MAP: Final = KeyedKind(
    kube.CONFIGMAPS, "ConfigMap", "configMapKeyRef", "configMapRef", "configMap", "name", "config"
)
SECRET: Final = KeyedKind(kube.SECRETS, "Secret", "secretKeyRef", "secretRef", "secret", "secretName", "secret")
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
