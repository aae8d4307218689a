"""Whether a manifest is an MXJob that can run: one message per mistake, with the field's path and what is expected."""

import difflib
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.crd import job_schema
from mxnet_operator.api.rules import RULES, TRANSITION_RULES
from mxnet_operator.api.structural import FieldError, join, prune, structural_errors
from mxnet_operator.api.types import MXJob

__all__ = ["FieldError", "decode", "unknown_fields", "validate", "validate_update"]


def validate(manifest: Any) -> list[FieldError]:
    """Every mistake in a manifest of a v1 MXJob; empty if the API server would take it.

    As on the server, the rules between fields are looked at only once each field is well-formed. Unknown fields are
    not an error here: see `unknown_fields`.
    """
    if not isinstance(manifest, dict):
        return [
            FieldError("", "FieldValueTypeInvalid", "an MXJob is a mapping with apiVersion, kind, metadata and spec")
        ]
    errors = [*_header_errors(manifest), *structural_errors(job_schema(), manifest)]
    return errors or [
        FieldError((path + rule.field).lstrip("."), "FieldValueInvalid", f"Invalid value: {rule.message}")
        for rule in RULES
        for path, value in _places(rule.at, manifest)
        if not rule.holds(value)
    ]


def validate_update(old: Any, new: Any) -> list[FieldError]:
    """What speaks against a valid manifest taking the place of the stored one, for the API server as well."""
    return [
        FieldError((path + rule.field).lstrip("."), "FieldValueInvalid", f"Invalid value: {rule.message}")
        for rule in TRANSITION_RULES
        for (path, before), (_, after) in zip(_places(rule.at, old), _places(rule.at, new), strict=True)
        if not rule.allows(before, after)
    ]


def unknown_fields(manifest: dict[str, Any]) -> list[FieldError]:
    """Fields that the schema doesn't know and the server would drop, with the name that was probably meant."""
    pruned = json.loads(json.dumps(manifest, default=str))
    return [FieldError(path, "FieldValueInvalid", _unknown(path)) for path in prune(job_schema(), pruned)]


def decode(manifest: bytes | dict[str, Any]) -> MXJob:
    """The job in a manifest that is valid.

    Raises:
        msgspec.ValidationError: a field has the wrong type (the manifest was not validated).
    """
    if isinstance(manifest, bytes):
        return msgspec.json.decode(manifest, type=MXJob, strict=True)
    return msgspec.convert(manifest, MXJob)


def _header_errors(manifest: dict[str, Any]) -> Iterator[FieldError]:
    for field, expected in (("apiVersion", names.API_VERSION), ("kind", names.KIND)):
        value = manifest.get(field)
        if value is None:
            yield FieldError(field, "FieldValueRequired", f"Required value: expected {expected}")
        elif isinstance(value, str) and value != expected:
            yield FieldError(
                field,
                "FieldValueNotSupported",
                f'Unsupported value: "{value}": supported values: "{expected}"',
            )
    metadata = manifest.get("metadata", {})
    if not isinstance(metadata, dict):
        return
    if not (metadata.get("name") or metadata.get("generateName")):
        yield FieldError("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")
    for field in ("generateName", "namespace"):
        if not isinstance(metadata.get(field, ""), str):
            yield FieldError(
                f"metadata.{field}", "FieldValueTypeInvalid", f"Invalid value: {metadata[field]!r}: must be a string"
            )
    yield from _string_map_errors(metadata, "labels")
    yield from _string_map_errors(metadata, "annotations")


def _string_map_errors(metadata: dict[str, Any], field: str) -> Iterator[FieldError]:
    entries = metadata.get(field)
    if entries is not None and not (
        isinstance(entries, dict) and all(isinstance(value, str) for value in entries.values())
    ):
        yield FieldError(f"metadata.{field}", "FieldValueTypeInvalid", "Invalid value: must map strings to strings")


def _places(at: tuple[str, ...], value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if not at:
        yield path, value
        return
    key, *rest = at
    if key == "*":
        for name, child in value.items():
            yield from _places(tuple(rest), child, f"{path}[{name}]")
    else:
        yield from _places(tuple(rest), value[key], join(path, key))


def _unknown(path: str) -> str:
    parent, _, field = path.rpartition(".")
    node = job_schema()
    for part in parent.split(".") if parent else ():
        node = node.get("properties", {}).get(part) or node.get("additionalProperties") or {}
    near = difflib.get_close_matches(field, node.get("properties", {}), n=1)
    return f'unknown field "{path}"' + (f", did you mean {near[0]}?" if near else "")
