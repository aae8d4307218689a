"""Validation of object metadata: names, labels, annotations and owners, with kube-apiserver's messages."""

import json
import re
from collections.abc import Iterator

from mxnet_operator.api.metadata_rules import SUBDOMAIN, SUBDOMAIN_RULE, annotation_errors, key_errors, label_errors
from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import NAMESPACES, SERVICES, Resource
from mxnet_operator.local.apiserver.statuses import required

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def is_dns_label(text: str) -> bool:
    """Whether `text` is a valid name of a container, a port or a namespace."""
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


def dns_label_errors(path: str, text: str) -> Iterator[FieldError]:
    """Validate a name that has to be a DNS label."""
    if len(text) > 63:
        yield invalid(path, text, "must be no more than 63 bytes")
    if not _LABEL.fullmatch(text):
        yield invalid(path, text, _LABEL_RULE)


def subdomain_errors(path: str, text: str) -> Iterator[FieldError]:
    """Validate a name that has to be a DNS subdomain, as most objects' names are."""
    if len(text) > 253:
        yield invalid(path, text, "must be no more than 253 bytes")
    if not SUBDOMAIN.fullmatch(text):
        yield invalid(path, text, SUBDOMAIN_RULE)


def metadata_errors(resource: Resource, obj: Object) -> Iterator[FieldError]:
    """Validate an object's metadata."""
    metadata = obj["metadata"]
    yield from _name_errors(resource, metadata.get("name", ""))
    yield from label_errors(metadata.get("labels") or {}, "metadata.labels")
    yield from annotation_errors(metadata.get("annotations") or {}, "metadata.annotations")
    owners = metadata.get("ownerReferences") or []
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                detail = "version must not be empty" if field == "apiVersion" else "must not be empty"
                yield invalid(f"metadata.ownerReferences.{field}", "", detail)
    controllers = [f"{each.get('kind')}/{each.get('name')}" for each in owners if each.get("controller")]
    if len(controllers) > 1:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        shown = json.dumps(owners, separators=(",", ":"))
        yield FieldError("metadata.ownerReferences", "FieldValueInvalid", f"Invalid value: {shown}: {detail}")
    for finalizer in metadata.get("finalizers") or ():
        yield from key_errors(finalizer, "metadata.finalizers", finalizer)


def _name_errors(resource: Resource, name: str) -> Iterator[FieldError]:
    path = "metadata.name"
    if not name:
        yield required(path, "name or generateName is required")
    elif resource is NAMESPACES and not is_dns_label(name):
        yield invalid(path, name, _LABEL_RULE)
    elif resource is SERVICES and (len(name) > 63 or not _LABEL_1035.fullmatch(name)):
        yield invalid(path, name, _LABEL_1035_RULE)
    elif len(name) > 253:
        yield invalid(path, name, "must be no more than 253 characters")
    elif not SUBDOMAIN.fullmatch(name):
        yield invalid(path, name, SUBDOMAIN_RULE)
