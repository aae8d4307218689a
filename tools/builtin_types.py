"""Write `builtin_types.json`, the fields of Kubernetes' own types, from the models of the official Python client."""

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from kubernetes.client import Configuration, models

TARGET: Final = Path(__file__).resolve().parent.parent / "operator" / "mxnet_operator" / "api" / "builtin_types.json"
KINDS = {
    "Pod": "V1Pod",
    "Service": "V1Service",
    "ConfigMap": "V1ConfigMap",
    "Secret": "V1Secret",
    "PersistentVolumeClaim": "V1PersistentVolumeClaim",
    "Event": "CoreV1Event",
    "Namespace": "V1Namespace",
    "Node": "V1Node",
    "Lease": "V1Lease",
    "Binding": "V1Binding",
    "PriorityClass": "V1PriorityClass",
    "ObjectMeta": "V1ObjectMeta",
    "PodTemplateSpec": "V1PodTemplateSpec",
}
QUANTITIES = {"allocatable", "capacity", "limits", "overhead", "requests"}
# where the client's types say less than the API does
SPECIAL = {("str", "divisor"): "quantity", ("str", "sizeLimit"): "quantity"}
SPECIAL |= {("object", "port"): "int-or-string", ("object", "targetPort"): "int-or-string"}
BYTES = {("V1ConfigMap", "binary_data"), ("V1Secret", "data")}
SCALARS = {"str": "str", "datetime": "str", "int": "int", "bool": "bool", "float": "float", "object": "any"}


def _compact(model_type: str, field: str, waiting: list[str]) -> str:
    if special := SPECIAL.get((model_type, field)):
        return special
    if match := re.fullmatch(r"list\[(.*)\]", model_type):
        return f"[{_compact(match[1], field, waiting)}]"
    if match := re.fullmatch(r"dict[\[(](?:str), ?(.*)[\])]", model_type):
        return "{quantity}" if field in QUANTITIES else f"{{{_compact(match[1], field, waiting)}}}"
    if model_type in SCALARS:
        return SCALARS[model_type]
    waiting.append(model_type)
    return _name(model_type)


def _is_required(cls: Any, attribute: str) -> bool:
    instance = cls.__new__(cls)
    instance.local_vars_configuration = Configuration()
    try:
        setattr(instance, attribute, None)
    except ValueError:
        return True
    return False


def _name(model: str) -> str:
    return re.sub(r"^V1(?=[A-Z])|^Core(?=V1)", "", model).removeprefix("V1")


def builtin_types() -> dict[str, dict[str, str]]:
    """Return `{type: {field: type}}` of the built-in resources, and of the types within them."""
    found: dict[str, dict[str, str]] = {}
    waiting = list(KINDS.values())
    while waiting:
        model = waiting.pop()
        name = _name(model)
        if name in found:
            continue
        cls = getattr(models, model)
        found[name] = {}
        for attribute, model_type in cls.openapi_types.items():
            field = cls.attribute_map[attribute]
            of_field = "{bytes}" if (model, attribute) in BYTES else _compact(model_type, field, waiting)
            found[name][field] = of_field + "!" * _is_required(cls, attribute)
    return {name: dict(sorted(fields.items())) for name, fields in sorted(found.items())}


if __name__ == "__main__":
    lines = [f" {json.dumps(name)}: {json.dumps(fields)}" for name, fields in builtin_types().items()]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
