"""Writes docs/mxjob-reference.md, the fields of a kubeflow.org/v1 MXJob, from the types and the CRD made of them."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import inspect

from mxnet_operator.api.crd import version_schema
from mxnet_operator.api.kinds import MXJOB
from mxnet_operator.api.schemas import field_docs
from mxnet_operator.api.types import MXJobSpec, MXJobStatus

TARGET: Final = Path(__file__).resolve().parent.parent / "docs" / "mxjob-reference.md"
HEAD: Final = """# MXJob: reference of fields

Fields of `apiVersion: kubeflow.org/v1`, `kind: MXJob`; `kubectl explain mxjob` shows the same. [How a job behaves](outcomes.md), [older formats](formats.md).
† marks what training-operator 1.8.1 didn't have, the last release with MXJob.

<!-- Generated from the API types by `make generate`. -->
"""  # noqa: E501 - a paragraph is a line
_NOT_IN_181: Final = " Not in 1.8.1."
_TEMPLATE: Final = "template"
_PODS: Final = (
    "[PodTemplateSpec](https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-template-v1/)"
)

_INLINE: Final = "status.training"
"""Where the objects in a field are named in its row."""

Schema = dict[str, Any]


def reference() -> str:
    """The whole document."""
    properties = version_schema(MXJOB, MXJOB.stored)["properties"]
    parts = [HEAD]
    for name, of in (("spec", MXJobSpec), ("status", MXJobStatus)):
        parts += _sections(name, properties[name], inspect.type_info(of))
    return "\n".join(parts)


def _sections(path: str, schema: Schema, of: inspect.Type) -> Iterator[str]:
    """The table of an object's fields, and after it those of the objects in it."""
    struct, suffix = _struct(of)
    if struct is None:
        return
    for key in suffix:
        schema = schema.get("items" if key == "[]" else "additionalProperties", {})
    path += "".join(suffix)
    properties = schema.get("properties") or _generated(struct.cls)
    rows = [_row(each, properties.get(each.encode_name, {}), path) for each in struct.fields]
    yield "\n".join([f"## {path}", "", "| field | type | description |", "|---|---|---|", *rows, ""])
    for each in struct.fields if path != _INLINE else ():
        yield from _sections(f"{path}.{each.encode_name}", properties.get(each.encode_name, {}), each.type)


def _generated(of: type[msgspec.Struct]) -> dict[str, Schema]:
    """The fields of a type of whose object the CRD's schema says nothing."""
    found: dict[str, Schema] = msgspec.json.schema(of)["$defs"][of.__name__]["properties"]
    return {name: {**field, "description": field_docs()[of.__name__][name]} for name, field in found.items()}


def _row(field: inspect.Field, schema: Schema, path: str) -> str:
    text: str = schema.get("description", "").replace("|", "\\|")
    name = f"`{field.encode_name}`" + "†" * text.endswith(_NOT_IN_181) + " (required)" * field.required
    below_it = _struct(field.type)[0]
    if below_it is not None and path == _INLINE:
        names = ", ".join(f"`{each.encode_name}`" for each in below_it.fields)
        kind = f"{_kind(schema, field.type)}: {names}"
    elif below_it is not None:
        below = "".join([field.encode_name, *_struct(field.type)[1]])
        anchor = "".join(c for c in f"{path}.{below}".lower() if c.isalnum() or c in "-_")
        kind = f"[{_kind(schema, field.type)}](#{anchor})"
    else:
        kind = _PODS if field.encode_name == _TEMPLATE else _kind(schema, field.type)
    words = re.sub(rf"^(?i:{field.encode_name}) (?:(?:is|are|defines) )?", "", text.removesuffix(_NOT_IN_181))
    words = re.sub(r"^(?i:the|an?) ", "", words)
    return f"| {name} | {kind} | {words[:1].upper()}{words[1:]} |"


def _kind(schema: Schema, of: inspect.Type) -> str:
    """A field's type, its bounds and its default in the words of JSON."""
    struct, suffix = _struct(of)
    if struct is not None:
        word = {"[]": "list of objects", ".*": "map of objects"}.get("".join(suffix), "object")
    elif "enum" in schema:
        word = ", ".join(f"`{each}`" for each in schema["enum"] if each)
    elif schema.get("type") == "array":
        word = f"list of {_kind(schema['items'], of)}"
    elif isinstance(schema.get("additionalProperties"), dict):
        word = f"map of {_kind(schema['additionalProperties'], of)}"
    else:
        word = {"date-time": "time (RFC 3339)"}.get(schema.get("format", ""), schema.get("type", "any"))
    return word + (f", default `{json.dumps(schema['default'])}`" if "default" in schema else "")


def _struct(of: inspect.Type) -> tuple[inspect.StructType | None, list[str]]:
    """The object type in a field's type, and where it stands: in the field, in a list ([]), in a map (.*)."""
    if isinstance(of, inspect.Metadata):
        return _struct(of.type)
    if isinstance(of, inspect.UnionType):
        found = [_struct(each) for each in of.types]
        return next((each for each in found if each[0] is not None), (None, []))
    if isinstance(of, inspect.VarTupleType):
        struct, below = _struct(of.item_type)
        return struct, ["[]", *below]
    if isinstance(of, inspect.DictType):
        struct, below = _struct(of.value_type)
        return struct, [".*", *below]
    return (of, []) if isinstance(of, inspect.StructType) else (None, [])


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
