"""Validation of objects: metadata, custom resources by schema and rules, built-in ones by what clients notice."""

import re
from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api.builtin_types import types
from mxnet_operator.api.kinds import ALL
from mxnet_operator.api.metadata_rules import SUBDOMAIN, SUBDOMAIN_RULE, annotation_errors, key_errors, label_errors
from mxnet_operator.api.pod_template import builtin_schema, complete_schema
from mxnet_operator.api.quantities import container_requests, pod_requests, quantity
from mxnet_operator.api.structural import (
    FieldError,
    Schema,
    apply_schema_defaults,
    drop_nulls,
    invalid,
    prune,
    structural_errors,
)
from mxnet_operator.api.validation import validate
from mxnet_operator.local.apiserver.json_values import Object, at, without_nulls
from mxnet_operator.local.apiserver.keyed_objects import keyed_errors
from mxnet_operator.local.apiserver.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    SERVICES,
    Resource,
)
from mxnet_operator.local.apiserver.statuses import (
    bad_request,
    forbidden_field,
    required,
    unsupported,
)

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def _label_errors(path: str, text: str) -> Iterator[FieldError]:
    if len(text) > 63:
        yield invalid(path, text, "must be no more than 63 bytes")
    if not _LABEL.fullmatch(text):
        yield invalid(path, text, _LABEL_RULE)


def metadata_errors(resource: Resource, obj: Object) -> Iterator[FieldError]:
    metadata = obj["metadata"]
    yield from _name_errors(resource, metadata.get("name", ""))
    yield from label_errors(metadata.get("labels") or {}, "metadata.labels")
    yield from annotation_errors(metadata.get("annotations") or {}, "metadata.annotations")
    for owner in metadata.get("ownerReferences") or ():
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                detail = "version must not be empty" if field == "apiVersion" else "must not be empty"
                yield invalid(f"metadata.ownerReferences.{field}", "", detail)
    for finalizer in metadata.get("finalizers") or ():
        yield from key_errors(finalizer, "metadata.finalizers", finalizer)


def _name_errors(resource: Resource, name: str) -> Iterator[FieldError]:
    path = "metadata.name"
    if not name:
        yield required(path, "name or generateName is required")
    elif resource in (NAMESPACES, SERVICES):
        yield from _label_errors(path, name)
    elif len(name) > 253:
        yield invalid(path, name, "must be no more than 253 characters")
    elif not SUBDOMAIN.fullmatch(name):
        yield invalid(path, name, SUBDOMAIN_RULE)


HAVE_RULES: Final = frozenset((kind.group, kind.plural) for kind in ALL)
"""Resources with rules beyond their schema: `api.validation` has the Python equivalents of the CRDs' CEL rules."""
_LARGEST_PORT = 65535
_HEADER = ("apiVersion", "kind", "metadata")
_UNTYPED: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}


class DecodeError(Exception):
    """A body can't be decoded as an object of its kind."""


def decode(resource: Resource, body: Any) -> tuple[Object, list[str]]:
    """Decode the object in a request's body; returns it without unknown fields, and the paths of those.

    Raises:
        DecodeError: it can't be decoded as one of the resource's kind.
        StatusError: 400 for what isn't an object of the resource's kind.
    """
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    _check_kind(resource, body)
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, **_without_nulls(resource, body)}
    return obj, _fit(resource, obj)


def _check_kind(resource: Resource, body: Object) -> None:
    """Reject an object of another kind or API version; the path says both for built-in types, whose bodies may not."""
    api_version, kind = body.get("apiVersion"), body.get("kind")
    if not resource.custom:
        api_version, kind = api_version or resource.api_version, kind or resource.kind
    if (api_version, kind) != (resource.api_version, resource.kind):
        given = f"{kind or 'no kind'} of {api_version or 'no API version'}"
        raise bad_request(f"the object in the body is {given}, not {resource.kind} of {resource.api_version}")


def _without_nulls(resource: Resource, body: Object) -> Object:
    # null means absent everywhere in a built-in type, and in any object's metadata
    if not resource.custom:
        return without_nulls(body)  # type: ignore[no-any-return]
    copied = {key: value for key, value in body.items() if not (key == "metadata" and value is None)}
    return copied | {"metadata": without_nulls(body.get("metadata") or {})}


def _fit(resource: Resource, obj: Object) -> list[str]:
    """Fit a decoded object to its schema, in place; returns the paths of the fields that were unknown."""
    metadata, content = obj["metadata"], {key: value for key, value in obj.items() if key not in _HEADER}
    schema = _schema(resource)
    _check_types(builtin_schema("ObjectMeta"), metadata, "metadata")
    unknown = prune(builtin_schema("ObjectMeta"), metadata, "metadata") + prune(schema, content)
    if resource.custom:
        drop_nulls(schema, content)
        apply_schema_defaults(schema, content)
    else:
        _check_types(schema, content)
    for key in obj.keys() - content.keys() - set(_HEADER):
        del obj[key]
    obj.update(content)
    return unknown


def _schema(resource: Resource) -> Schema:
    if resource.custom:
        return dict(resource.schema or {})
    return builtin_schema(resource.kind) if resource.kind in types() else _UNTYPED


def _check_types(schema: Schema, value: Object, path: str = "") -> None:
    """Raise DecodeError where a value of a built-in type can't be decoded; what is missing is validated later."""
    for error in structural_errors(schema, value, path):
        if error.reason != "FieldValueRequired":
            raise DecodeError(error.message)


def errors(resource: Resource, obj: Object, stored: Object | None = None) -> list[FieldError]:
    """Validate an object that is about to be stored, in place of `stored` if there is one.

    Values that the stored object has too are not checked again (Kubernetes' ratcheting validation).
    """
    found = list(metadata_errors(resource, obj))
    if stored is not None and _shares_all_but_status(obj, stored):
        if resource.custom and "status" in obj:
            schema = _schema(resource).get("properties", {}).get("status", {})
            found += structural_errors(schema, obj["status"], "status")
        return found
    if resource.key in HAVE_RULES:
        return found + [error for error in validate(obj, replaces=stored) if error not in found]
    if resource.custom:
        return found + structural_errors(_schema(resource), obj)
    checks = {
        PODS: _pod_errors,
        SERVICES: _service_errors,
        CONFIG_MAPS: keyed_errors,
        SECRETS: keyed_errors,
        PERSISTENT_VOLUME_CLAIMS: _claim_errors,
    }
    return found + list(checks[resource](obj)) if resource in checks else found


def _shares_all_but_status(obj: Object, stored: Object) -> bool:
    apart = ("status", "metadata")
    parts = (obj.keys() | stored.keys()).difference(apart, _HEADER)
    return all(obj.get(part) is stored.get(part) for part in parts)


def _pod_errors(pod: Object) -> Iterator[FieldError]:
    """Validate a pod by its schema, and what the local kubelet and scheduler rely on.

    Kubernetes has some hundred further rules: they are the real API server's, which `mxjob local up` can start.
    """
    spec = pod.get("spec") or {}
    found = structural_errors(complete_schema()["properties"]["spec"], spec, "spec")
    if found:
        yield from found
        return
    taken: set[str] = set()
    for field in ("volumes", "containers", "initContainers"):
        for position, each in enumerate(spec.get(field) or ()):
            path, name = f"spec.{field}[{position}]", each["name"]
            yield from _label_errors(f"{path}.name", name)  # it becomes the name of a folder
            if name in taken and field != "volumes":
                yield FieldError(f"{path}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"')
            if field != "volumes":
                taken.add(name)
                found += _amount_errors(path, each)
    yield from found
    if not found:
        try:
            pod_requests(spec)
        except ValueError as error:
            yield invalid("spec.overhead", spec.get("overhead"), str(error))


def _amount_errors(path: str, container: Object) -> Iterator[FieldError]:
    try:
        asked = container_requests(container)
    except ValueError as error:  # Its schema takes numbers that no machine has.
        yield invalid(f"{path}.resources", container["resources"], str(error))
        return
    for name, amount in asked.items():
        if amount < 0:
            where = f"{path}.resources.requests[{name}]"
            yield invalid(where, container["resources"]["requests"][name], "must be greater than or equal to 0")
    limits, requests = (container["resources"].get(kind) or {} for kind in ("limits", "requests"))
    for name in (each for each in requests if "/" in each):  # such as GPUs, which nobody shares
        if name not in limits:
            yield required(f"{path}.resources.limits", "Limit must be set for non overcommitable resources")
        elif asked[name] != quantity(limits[name]):
            why = f"must be equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.resources.requests", requests[name], why)


def _service_errors(service: Object) -> Iterator[FieldError]:
    spec = service.get("spec") or {}
    if spec.get("type") != "ClusterIP":
        yield unsupported("spec.type", spec.get("type"), ("ClusterIP",))
    if spec.get("clusterIP") != "None":
        yield unsupported("spec.clusterIP", spec.get("clusterIP"), ("None",))
    ports = spec.get("ports") or []
    for position, port in enumerate(ports):
        if not 1 <= port.get("port", 0) <= _LARGEST_PORT:
            yield invalid(f"spec.ports[{position}].port", port.get("port"), "must be between 1 and 65535, inclusive")
        if len(ports) > 1 and not port.get("name"):
            yield required(f"spec.ports[{position}].name")
    yield from label_errors(spec.get("selector") or {}, "spec.selector")


def _claim_errors(claim: Object) -> Iterator[FieldError]:
    if not claim["spec"].get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if at(claim, "spec", "resources", "requests", "storage") is None:
        yield required("spec.resources[storage]")


_MUTABLE = ("activeDeadlineSeconds", "schedulingGates", "tolerations")


def change_errors(resource: Resource, old: Object, new: Object) -> Iterator[FieldError]:
    """Validate immutable fields on an update."""
    finalizers = at(old, "metadata", "finalizers", default=[])
    added = [each for each in at(new, "metadata", "finalizers", default=[]) if each not in finalizers]
    if added and at(old, "metadata", "deletionTimestamp"):
        detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
        listed = ", ".join(f'"{each}"' for each in added)
        yield forbidden_field("metadata.finalizers", f"{detail}[]string{{{listed}}}")
    if resource is PODS and new.get("spec") is not old.get("spec"):
        yield from _pod_change_errors(old.get("spec") or {}, new.get("spec") or {})


def _pod_change_errors(old: Object, new: Object) -> Iterator[FieldError]:
    for field in ("containers", "initContainers"):
        if len(old.get(field) or ()) != len(new.get(field) or ()):
            yield forbidden_field(f"spec.{field}", "pod updates may not add or remove containers")
            return
    if _fixed(old) != _fixed(new):
        yield forbidden_field(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
            "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
            "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        )
    before, after = old.get("activeDeadlineSeconds"), new.get("activeDeadlineSeconds")
    if before is not None and (after is None or after > before):
        yield invalid("spec.activeDeadlineSeconds", after, "must be less than or equal to previous value")


def _fixed(spec: Object) -> Object:
    kept = {key: value for key, value in spec.items() if key not in _MUTABLE}
    for field in ("containers", "initContainers"):
        kept[field] = [{k: v for k, v in c.items() if k != "image"} for c in kept.get(field) or ()]
    return kept
