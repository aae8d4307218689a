"""Validation of a manifest as the API server does it: one message per error, with the field and what is expected."""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

import msgspec

from mxnet_operator.api import kinds
from mxnet_operator.api.formats import definition_of
from mxnet_operator.api.kinds import Kind
from mxnet_operator.api.metadata_rules import annotation_errors, label_errors
from mxnet_operator.api.pod_template import builtin_schema
from mxnet_operator.api.rules import Rule
from mxnet_operator.api.schemas import complete_schema, is_served, job_schema, served_schema
from mxnet_operator.api.structural import FieldError, Schema, clone, drop_nulls, join, prune, structural_errors
from mxnet_operator.api.types import MXJob

_GENERATED_SUFFIX = 5
"""Characters that the API server appends to generateName."""


def validate(manifest: Any, *, replaces: Any = None, is_stored: bool = False) -> list[FieldError]:
    """Return every reason for which the API server would reject a manifest of any of our kinds; empty if it accepts it.

    What is as in the stored manifest that it `replaces` is not checked by rules again, nor a new object's rules; a
    stored job is not checked by the rules for submission.

    As on the server, the rules between fields are checked only once each field is well-formed, and a null is an absent
    field. Unknown fields are not an error here: see `unknown_fields`; nor is what only the pod template's complete
    schema knows: see `template_errors`.
    """
    if not isinstance(manifest, dict):
        return [
            FieldError("", "FieldValueTypeInvalid", "an MXJob is a mapping with apiVersion, kind, metadata and spec")
        ]
    kind, version = _kind(manifest), _version(manifest)
    manifest = without_nulls(manifest)
    errors = [*_header_errors(manifest), *structural_errors(served_schema(kind, version), manifest)]
    served = (rule for rule in _rules(kind, version) if is_served(rule, version))
    rules = (rule for rule in served if not (is_stored and rule.of_submission))
    return [*_label_errors(manifest), *(errors or _broken(rules, manifest, replaces))]


def without_nulls(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a manifest as the server stores it: without the fields that are null."""
    copied: dict[str, Any] = clone(manifest)
    drop_nulls(job_schema(_kind(manifest)), copied, defaulted=True)
    if isinstance(metadata := copied.get("metadata"), dict):
        copied["metadata"] = {name: value for name, value in metadata.items() if value is not None}
    return copied


def template_errors(manifest: dict[str, Any]) -> list[FieldError]:
    """Return what is wrong in a pod template that the CRD's schema and rules do not cover.

    The API server accepts such a job and rejects its pods.
    """
    kind, version = _kind(manifest), _version(manifest)
    schema = complete_schema(kind)
    copied = without_nulls(manifest)
    drop_nulls(schema, copied, defaulted=True)
    unserved = (rule for rule in _rules(kind, version) if not is_served(rule, version))
    return structural_errors(schema, copied) or _broken(unserved, copied)


def missing_fields(manifest: Any) -> list[FieldError]:
    """Return the errors of missing fields that only a rule requires; checked also where others are malformed."""
    if not isinstance(manifest, dict) or not isinstance(manifest.get("spec"), dict):
        return []
    return _broken((rule for rule in definition_of(_kind(manifest)).rules if rule.required), manifest)


def validate_update(old: Any, new: Any) -> list[FieldError]:
    """Return the errors of a valid manifest as a replacement of the stored one, as the API server finds them."""
    return [
        FieldError((path + rule.field).lstrip("."), "FieldValueInvalid", f"Invalid value: {rule.message}")
        for rule in definition_of(_kind(new)).transitions
        for before in (dict(_places(rule.at, old)),)
        for path, after in _places(rule.at, new)
        if path in before and not rule.allows(before[path], after)
    ]


def unknown_fields(manifest: dict[str, Any]) -> list[FieldError]:
    """Return fields that the server would drop from the job or its pods, with the name that was probably meant."""
    schema, metadata, given = complete_schema(_kind(manifest)), builtin_schema("ObjectMeta"), manifest.get("metadata")
    known = {**schema, "properties": {**schema["properties"], "apiVersion": {}, "kind": {}, "metadata": metadata}}
    names = {*metadata["properties"], "clusterName"}  # servers before 1.25 wrote the last one
    unknown = [f"metadata.{name}" for name in given if name not in names] if isinstance(given, dict) else []
    unknown += prune(schema, clone(manifest))
    return [FieldError(path, "FieldValueInvalid", _unknown(known, path)) for path in unknown]


def decode(manifest: bytes | dict[str, Any]) -> MXJob:
    """Return the job in a valid manifest.

    Raises:
        msgspec.ValidationError: a field has the wrong type (the manifest was not validated).
    """
    if isinstance(manifest, bytes):
        return msgspec.json.decode(manifest, type=MXJob, strict=True)
    return msgspec.convert(manifest, MXJob)


def _rules(kind: Kind, version: str) -> Iterator[Rule]:
    return (rule for rule in definition_of(kind).rules if not rule.versions or version in rule.versions)


def _broken(rules: Iterable[Rule], manifest: dict[str, Any], replaces: Any = None) -> list[FieldError]:
    return [
        FieldError(
            (path + rule.field).lstrip("."),
            "FieldValueRequired" if rule.required else "FieldValueInvalid",
            rule.detail(value),
        )
        for rule in rules
        if not (rule.at_creation and replaces is not None)
        for before in (dict(_places(rule.at, replaces or {})),)
        for path, value in _places(rule.at, _named(manifest))
        if not (path in before and before[path] == value) and not rule.holds(value)
    ]


def _named(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest with a name such as the server gives it where it has a generateName."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") or not metadata.get("generateName"):
        return manifest
    return {**manifest, "metadata": {**metadata, "name": metadata["generateName"] + "x" * _GENERATED_SUFFIX}}


def _kind(manifest: dict[str, Any]) -> Kind:
    """Return the kind that a manifest is of, or most probably meant to be."""
    api_version = manifest.get("apiVersion")
    group = api_version.partition("/")[0] if isinstance(api_version, str) else ""
    kind = manifest.get("kind")
    known = [each for each in kinds.ALL if kind is None or each.kind == kind] or list(kinds.ALL)
    return next((each for each in known if each.group == group), known[0])


def _version(manifest: dict[str, Any]) -> str:
    """Return the API version that a manifest is of; the stored one if it names none that is served."""
    kind, api_version = _kind(manifest), manifest.get("apiVersion")
    version = api_version.rpartition("/")[2] if isinstance(api_version, str) else ""
    return version if version in kind.versions else kind.stored


def _header_errors(manifest: dict[str, Any]) -> Iterator[FieldError]:
    kind = _kind(manifest)
    like = [each for each in kinds.ALL if each.kind == kind.kind]
    supported = {
        "apiVersion": [f"{each.group}/{version}" for each in like for version in each.versions],
        "kind": [each.kind for each in kinds.ALL if each.group == kind.group],
    }
    for field, values in supported.items():
        value = manifest.get(field)
        if value is None:
            yield FieldError(field, "FieldValueRequired", f"Required value: expected {values[0]}")
        elif isinstance(value, str) and value not in values:
            known = ", ".join(f'"{each}"' for each in values)
            yield FieldError(
                field, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {known}'
            )
    metadata = manifest.get("metadata", {})
    if not isinstance(metadata, dict):
        return
    if not (metadata.get("name") or metadata.get("generateName")):
        yield FieldError("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")
    with_own_words = ("name", "generateName", "labels", "annotations")
    others = {field: value for field, value in metadata.items() if field not in with_own_words}
    for error in structural_errors(builtin_schema("ObjectMeta"), others, "metadata"):
        if error.reason == "FieldValueTypeInvalid":
            yield error
    for field in ("labels", "annotations"):
        if metadata.get(field) is not None and not _maps_strings(metadata[field]):
            detail = "Invalid value: must map strings to strings"
            yield FieldError(f"metadata.{field}", "FieldValueTypeInvalid", detail)


def _label_errors(manifest: dict[str, Any]) -> Iterator[FieldError]:
    metadata = manifest.get("metadata")
    for field, errors in (("labels", label_errors), ("annotations", annotation_errors)):
        entries = metadata.get(field) if isinstance(metadata, dict) else None
        if _maps_strings(entries):
            yield from errors(entries, f"metadata.{field}")


def _maps_strings(entries: Any) -> TypeGuard[dict[str, str]]:
    return isinstance(entries, dict) and all(isinstance(each, str) for entry in entries.items() for each in entry)


def _places(at: tuple[str, ...], value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value at a path of a well-formed object, with its own path; none where a part of it is missing."""
    if not at:
        yield path, value
        return
    key, *rest = at
    if key == "*":
        for name, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(tuple(rest), child, f"{path}[{name}]")
    elif key in value:
        yield from _places(tuple(rest), value[key], join(path, key))


def _unknown(schema: Schema, path: str) -> str:
    parent, _, field = path.rpartition(".")
    for part in re.split(r"\.|\[\d+\]", parent) if parent else ():
        if part:
            schema = schema.get("properties", {}).get(part) or schema.get("additionalProperties") or {}
        schema = schema.get("items", schema)
    near = difflib.get_close_matches(field, schema.get("properties", {}), n=1)
    return f'unknown field "{path}"' + (f", did you mean {near[0]}?" if near else "")
