"""What every object's metadata must be: names, labels, annotations and owners, in kube-apiserver's words."""

import functools
import json
import re
from collections.abc import Iterator

from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import NAMESPACES, SERVICES, Resource
from mxnet_operator.local.apiserver.statuses import required

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
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
_QUALIFIED_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_ANNOTATIONS_LIMIT = 256 * 1024


def is_dns_label(text: str) -> bool:
    """Whether `text` can name a container, a port or a namespace."""
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


def dns_label_error(path: str, text: str) -> FieldError:
    """What is said of a name that isn't a DNS label."""
    return invalid(path, text, _LABEL_RULE)


def metadata_errors(resource: Resource, obj: Object) -> Iterator[FieldError]:
    """The mistakes in an object's metadata."""
    metadata = obj["metadata"]
    yield from _name_errors(resource, metadata.get("name", ""))
    yield from label_errors(metadata.get("labels") or {}, "metadata.labels")
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        yield from _key_errors(key.lower(), "metadata.annotations", key)
    size = sum(len(key) + len(value) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        detail = f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes"
        yield FieldError("metadata.annotations", "FieldValueTooLong", detail)
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
        yield from _key_errors(finalizer, "metadata.finalizers", finalizer)


def label_errors(labels: dict[str, str], path: str) -> Iterator[FieldError]:
    """The mistakes in a map of labels."""
    for key, value in labels.items():
        if not _is_key(key):
            yield from _key_errors(key, path, key)
        if len(value) > 63:
            yield invalid(path, value, "must be no more than 63 bytes")
        elif not _LABEL_VALUE.fullmatch(value):
            yield invalid(path, value, _LABEL_VALUE_RULE)


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
    elif not _SUBDOMAIN.fullmatch(name):
        yield invalid(path, name, _SUBDOMAIN_RULE)


@functools.lru_cache(maxsize=1024)
def _is_key(key: str) -> bool:
    """Whether there is nothing wrong with a label's key: the same few come with every object."""
    return not any(_key_errors(key, "", key))


def _key_errors(key: str, path: str, shown: str) -> Iterator[FieldError]:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        yield invalid(path, shown, f"prefix part {_SUBDOMAIN_RULE}")
    if len(name) > 63:
        yield invalid(path, shown, "name part must be no more than 63 bytes")
    elif not _QUALIFIED.fullmatch(name):
        yield invalid(path, shown, _QUALIFIED_RULE)
