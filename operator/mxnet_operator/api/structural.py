"""Structural schemas of CRDs as the API server applies them: validate, prune and default a value.

A structural schema is the subset of OpenAPI v3 that a CRD may use (KEP 1979-object-pruning). Only what our schemas
use is implemented: type, required, properties, additionalProperties, items, enum, bounds, defaults,
x-kubernetes-preserve-unknown-fields, and x-kubernetes-int-or-string. The messages are kube-apiserver's, so that a user
reads the same sentence from `mxjob validate`, the local cluster and a real one.
"""

import base64
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

Schema = dict[str, Any]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_HEADER: dict[str, Schema] = {name: {_PRESERVE: True} for name in ("apiVersion", "kind", "metadata")}
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*")


class FieldError(msgspec.Struct, frozen=True):
    """Validation error: its path, its kind (a cause's reason in a Status), and what is expected."""

    path: str
    reason: str
    detail: str

    @property
    def message(self) -> str:
        """Error in one line: `spec.jobMode: Required value`."""
        return f"{self.path}: {self.detail}" if self.path else self.detail


def invalid(path: str, value: Any, why: str) -> FieldError:
    """Return the error of a value of the right type that is not accepted."""
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {why}")


def structural_errors(schema: Schema, value: Any, path: str = "") -> list[FieldError]:
    """Return every error of `value` against `schema`, in the order of the schema; empty if there is none."""
    return list(_errors(schema, value, path))


def prune(schema: Schema, value: Any, path: str = "") -> list[str]:
    """Drop in place the fields that the schema doesn't know; return their paths, as `spec.bogus`.

    The header of an object (apiVersion, kind, metadata) is never pruned: the server knows it without a schema.
    """
    if path == "" and isinstance(value, dict):
        schema = {**schema, "properties": {**schema.get("properties", {}), **_HEADER}}
    return list(_prune(schema, value, path))


def drop_nulls(schema: Schema, value: Any, *, defaulted: bool = False) -> None:
    """Drop in place each null where the schema knows a field and no default for it, as the server does.

    A null in a list, or in a field that the schema doesn't know, stays. With `defaulted`, fields go that the server
    would fill with their default.
    """
    if isinstance(value, dict):
        properties, additional = schema.get("properties", {}), schema.get("additionalProperties")
        for name in list(value):
            child = properties.get(name, additional)
            if not isinstance(child, dict):
                child = {}
            elif value[name] is None and (defaulted or "default" not in child):
                del value[name]
                continue
            drop_nulls(child, value[name], defaulted=defaulted)
    elif isinstance(value, list):
        for item in value:
            drop_nulls(schema.get("items", {}), item, defaulted=defaulted)


def apply_schema_defaults(schema: Schema, value: Any) -> None:
    """Fill in place the defaults of missing fields of objects that are present."""
    if isinstance(value, dict):
        for name, child in schema.get("properties", {}).items():
            if value.get(name) is None and "default" in child:
                value[name] = json.loads(json.dumps(child["default"]))
            if name in value:
                apply_schema_defaults(child, value[name])
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            for name, item in value.items():
                if name not in schema.get("properties", {}):
                    apply_schema_defaults(additional, item)
    elif isinstance(value, list):
        for item in value:
            apply_schema_defaults(schema.get("items", {}), item)


def clone(value: Any) -> Any:
    """Copy a JSON value deeply, many times faster than copy.deepcopy."""
    if isinstance(value, dict):
        return {key: clone(each) for key, each in value.items()}
    return [clone(each) for each in value] if isinstance(value, list) else value


def join(path: str, key: str) -> str:
    """Return the path of a field below `path`, as the API server writes it where a rule is violated."""
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _below(path: str, key: str) -> str:
    """Return the path of a field below `path`, as the API server writes it for a type error: the key as it is."""
    return f"{path}.{key}" if path else key


def _errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    expected = "integer,string" if _INT_OR_STRING in schema else schema.get("type")
    if expected is not None and not any(_has_type(value, each) for each in expected.split(",")):
        name = _type_name(value)
        if "format" in schema and expected in ("integer", "number") and not isinstance(value, str | list | None):
            # kube-openapi compares formats where there is one; a null has none
            expected, name = schema["format"], "float64" if isinstance(value, float) else ""
        yield FieldError(
            path,
            "FieldValueTypeInvalid",
            f'Invalid value: "{name}": {path} in body must be of type {expected}: "{name}"',
        )
        return
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(json.dumps(item) for item in schema["enum"])
        yield FieldError(
            path,
            "FieldValueNotSupported",
            f"Unsupported value: {_shown(value)}: supported values: {supported}",
        )
        return
    if isinstance(value, dict):
        yield from _object_errors(schema, value, path)
    elif isinstance(value, list):
        yield from _array_errors(schema, value, path)
    else:
        yield from _scalar_errors(schema, value, path)


def _object_errors(schema: Schema, value: dict[str, Any], path: str) -> Iterator[FieldError]:
    for name in schema.get("required", ()):
        if name not in value:
            yield FieldError(_below(path, name), "FieldValueRequired", "Required value")
    limit = schema.get("maxProperties")
    if limit is not None and len(value) > limit:
        yield FieldError(path, "FieldValueTooMany", f"Too many: {len(value)}: must have at most {limit} items")
    properties: dict[str, Schema] = schema.get("properties", {})
    additional = schema.get("additionalProperties")
    for name, item in value.items():
        if name in properties:
            yield from _errors(properties[name], item, _below(path, name))
        elif isinstance(additional, dict):
            yield from _errors(additional, item, _below(path, name))


def _array_errors(schema: Schema, value: list[Any], path: str) -> Iterator[FieldError]:
    limit = schema.get("maxItems")
    if limit is not None and len(value) > limit:
        yield FieldError(path, "FieldValueTooMany", f"Too many: {len(value)}: must have at most {limit} items")
    least = schema.get("minItems", 0)
    if len(value) < least:
        yield invalid(path, len(value), f"{path} in body should have at least {least} items")
    for position, item in enumerate(value):
        yield from _errors(schema.get("items", {}), item, f"{path}[{position}]")


def _scalar_errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if isinstance(value, str):
        longest = schema.get("maxLength")
        if longest is not None and len(value) > longest:
            yield FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {longest} bytes")
        if len(value) < schema.get("minLength", 0):
            yield invalid(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
        pattern = schema.get("pattern")
        if pattern is not None and not re.search(pattern, value):
            yield invalid(path, value, f"{path} in body should match '{pattern}'")
        if schema.get("format") == "byte" and not _is_base64(value):
            yield invalid(path, value, "illegal base64 data")
        if schema.get("format") == "date-time" and not _is_timestamp(value):
            yield invalid(path, value, f"{path} in body must be of type date-time: {_shown(value)}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in schema and value < schema["minimum"]:
            yield invalid(path, value, f"{path} in body should be greater than or equal to {schema['minimum']}")
        if "maximum" in schema and value > schema["maximum"]:
            yield invalid(path, value, f"{path} in body should be less than or equal to {schema['maximum']}")


def _prune(schema: Schema, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        properties: dict[str, Schema] = schema.get("properties", {})
        additional = schema.get("additionalProperties")
        for name in list(value):
            if name in properties:
                yield from _prune(properties[name], value[name], _below(path, name))
            elif isinstance(additional, dict):
                yield from _prune(additional, value[name], _below(path, name))
            elif not schema.get(_PRESERVE) and additional is not True:
                del value[name]
                yield _below(path, name)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _prune(schema.get("items", {_PRESERVE: True}), item, f"{path}[{position}]")


_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "quantity": (int, float, str),
}


def _has_type(value: Any, expected: str) -> bool:
    if isinstance(value, bool):
        return expected == "boolean"
    if isinstance(value, float) and expected == "integer":
        return value.is_integer() and abs(value) < 2**53  # Go's decoder takes no float64 beyond for an integer
    return isinstance(value, _PYTHON_TYPES[expected])


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return next(name for name, types in _PYTHON_TYPES.items() if isinstance(value, types))


def _is_timestamp(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
    except ValueError:
        return False
    return True


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str).encode(errors="replace").decode()
    return text if len(text) <= 120 else f"{text[:117]}..."
