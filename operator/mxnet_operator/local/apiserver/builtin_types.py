"""Decoding of Kubernetes' built-in types as by kube-apiserver (`api/builtin_types.py` lists their fields)."""

import re
from typing import Any, Final

from mxnet_operator.api.builtin_types import types
from mxnet_operator.api.quantities import quantity
from mxnet_operator.local.apiserver.json_values import Object

_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def _is_base64(text: str) -> bool:
    return _BASE64.fullmatch(text.replace("\r", "").replace("\n", "")) is not None


_SCALARS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bytes": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
}


class DecodeError(Exception):
    """A body can't be decoded as its type; the message is in the words of Go's decoders."""


def decode(kind: str, obj: Object) -> list[str]:
    """Drop the fields of `obj` that `kind` doesn't have, in place, and return their paths.

    Numbers given as quantities (`cpu: 1`) become strings, as in the Go types.

    Raises:
        DecodeError: A field holds what it can't.
    """
    unknown: list[str] = []
    if not _fits(kind, obj):
        _walk(kind, obj, "", kind, unknown)
    return unknown


def _fits(expected: str, value: Any) -> bool:
    """Whether the value is valid as it is, a quick check that most values pass; else `_walk` reports or converts it."""
    if value is None or expected == "any":
        return True
    of = type(value)
    if of is dict:
        if expected[0] == "{":
            inner = expected[1:-1]
            return (inner == "str" and {str}.issuperset(map(type, value.values()))) or all(
                _fits(inner, each) for each in value.values()
            )
        fields = types().get(expected)
        return fields is not None and all(key in fields and _fits(fields[key], each) for key, each in value.items())
    if of is list:
        return expected[0] == "[" and all(_fits(expected[1:-1], each) for each in value)
    if expected == "bytes":
        return of is str and _is_base64(value)
    return expected in _SCALARS and of in _SCALARS[expected]


def _walk(expected: str, value: Any, path: str, owner: str, unknown: list[str]) -> Any:
    """Check and convert a value; `owner` is the type whose field `path` ends in."""
    if value is None or expected == "any":
        return value
    if expected == "quantity":
        return _quantity(value)
    if expected == "int-or-string":
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise DecodeError(f"json: cannot unmarshal {_json_type(value)} into Go value of type int32")
        return value
    if expected == "bytes" and isinstance(value, str):
        if not _is_base64(value):
            raise DecodeError("illegal base64 data")
        return value
    if expected in _SCALARS:
        if not isinstance(value, _SCALARS[expected]) or (isinstance(value, bool) and expected != "bool"):
            raise _wrong_type(expected, value, path, owner)
        return value
    if expected[0] == "[":
        if not isinstance(value, list):
            raise _wrong_type(expected, value, path, owner)
        value[:] = [_walk(expected[1:-1], each, f"{path}[{i}]", owner, unknown) for i, each in enumerate(value)]
        return value
    if not isinstance(value, dict):
        raise _wrong_type(expected, value, path, owner)
    if expected[0] == "{":
        value.update({k: _walk(expected[1:-1], each, f"{path}[{k}]", owner, unknown) for k, each in value.items()})
        return value
    fields = types()[expected]
    for key in list(value):
        where = f"{path}.{key}" if path else key
        if key in fields:
            value[key] = _walk(fields[key], value[key], where, expected, unknown)
        else:
            del value[key]
            unknown.append(where)
    return value


def _quantity(value: Any) -> str:
    text = str(value)
    try:
        quantity(text)
    except ValueError as error:
        raise DecodeError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from error
    return text


def _wrong_type(expected: str, value: Any, path: str, owner: str) -> DecodeError:
    field = re.sub(r"\[[^]]*]", "", f"{owner}.{path}")
    return DecodeError(
        f"json: cannot unmarshal {_json_type(value)} into Go struct field {field} of type {_go_type(expected)}"
    )


def _go_type(expected: str) -> str:
    if expected[0] == "[":
        return f"[]{_go_type(expected[1:-1])}"
    if expected[0] == "{":
        return f"map[string]{_go_type(expected[1:-1])}"
    scalars = {
        "str": "string",
        "bytes": "[]uint8",
        "int": "int32",
        "bool": "bool",
        "float": "float64",
        "quantity": "resource.Quantity",
    }
    return scalars.get(expected, f"v1.{expected}")


def _json_type(value: Any) -> str:
    names = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "value")


def open_api_schemas(kind: str) -> dict[str, Any]:
    """Build the OpenAPI schemas of `kind` and of every type that it contains, by name."""
    found: dict[str, Any] = {}
    waiting = [kind]
    while waiting:
        name = waiting.pop()
        if name not in found:
            fields = types()[name]
            found[name] = {"type": "object", "properties": {key: _schema(each) for key, each in fields.items()}}
            waiting += [inner for each in fields.values() if (inner := each.strip("[]{}")) in types()]
    return found


def _schema(expected: str) -> dict[str, Any]:
    if expected[0] == "[":
        return {"type": "array", "items": _schema(expected[1:-1])}
    if expected[0] == "{":
        return {"type": "object", "additionalProperties": _schema(expected[1:-1])}
    if expected in types():
        return {"allOf": [{"$ref": f"#/components/schemas/{expected}"}]}
    if expected == "bytes":
        return {"type": "string", "format": "byte"}
    json_types = {"str": "string", "quantity": "string", "int": "integer", "bool": "boolean", "float": "number"}
    return {"type": json_types.get(expected, "object")}
