"""Schemas of the pod template, generated from Kubernetes' own types: one for the CRDs, and a complete one.

The CRDs' goes down to DEPTH levels of objects and keeps unknown fields, so that those of newer Kubernetes reach the
pod; what is deeper is an object of any content, which the API server validates when the pod is created. The complete
one knows every field, and is for clients that validate a job before it is sent
(docs/decisions/api.md).
"""

import functools
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.builtin_types import POD_TEMPLATE, required, types

Schema = dict[str, Any]

DEPTH: Final = 4
"""Levels of objects that the CRDs type: template, pod, container or volume, and one below, as `env` or `resources`."""
MAX_CONTAINERS: Final = 32
QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""Pattern of a quantity, apimachinery's own; a number of either type is a quantity, too."""
_PRESERVE: Final = {"x-kubernetes-preserve-unknown-fields": True}
_SCALARS: Final[dict[str, Schema]] = {
    "str": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "int": {"type": "integer"},
    "int-or-string": {"x-kubernetes-int-or-string": True},
    "bool": {"type": "boolean"},
    "float": {"type": "number"},
}
_OF_THE_SERVER: Final = ("ephemeralContainers", "managedFields")
"""Fields that no template can set, left out of the CRDs."""


def crd_schema() -> Schema:
    """Return the template schema of the CRDs: structural, and small enough for `kubectl apply` (256 KiB a CRD)."""
    return _with_rules(_schema(POD_TEMPLATE, DEPTH))


@functools.cache
def complete_schema() -> Schema:
    """Return the template schema with all fields of all levels, and no others; its parts are shared, so only read it.

    Its type `quantity` is not for a CRD.
    """
    return _with_rules(builtin_schema(POD_TEMPLATE))


@functools.cache
def builtin_schema(name: str) -> Schema:
    """Return the complete schema of a built-in type, such as `ObjectMeta`; its parts are shared, so only read it."""
    return _schema(name, None)


def _schema(word: str, depth: int | None) -> Schema:
    """Return the schema of a type down to a depth for a CRD, or the complete one (None)."""
    if word[0] == "[":
        return {"type": "array", "items": _schema(word[1:-1], depth)}
    if word[0] == "{":
        return {"type": "object", "additionalProperties": _schema(word[1:-1], depth)}
    if word in types():
        needed = {"required": list(required()[word])} if required()[word] else {}
        if depth is None:
            fields = {name: builtin_schema(each) for name, each in types()[word].items()}
            return {"type": "object", **needed, "properties": fields}
        if depth == 0:
            return {"type": "object", **_PRESERVE}
        fields = {name: _schema(each, depth - 1) for name, each in types()[word].items() if name not in _OF_THE_SERVER}
        return {"type": "object", **needed, "properties": fields, **_PRESERVE}
    if word == "quantity":
        return {"pattern": QUANTITY} | ({"type": "quantity"} if depth is None else _PRESERVE)
    return dict(_SCALARS.get(word, _PRESERVE))


def _with_rules(template: Schema) -> Schema:
    """Return the template's schema with what an MXJob requires beyond a pod, and with bounds that keep CEL cheap."""
    spec = template["properties"]["spec"]
    containers = spec["properties"]["containers"]
    container = containers["items"]
    bounded = {
        "name": {"type": "string", "minLength": 1, "maxLength": names.MAX_NAME},
        "image": {"type": "string", "minLength": 1, "maxLength": 1024},
    }
    item = {**container, "required": ["name", "image"], "properties": {**container["properties"], **bounded}}
    listed = {**containers, "minItems": 1, "maxItems": MAX_CONTAINERS, "items": item}
    named = {**spec, "properties": {**spec["properties"], "containers": listed}}
    return {**template, "required": ["spec"], "properties": {**template["properties"], "spec": named}}
