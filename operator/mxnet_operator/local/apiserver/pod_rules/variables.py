"""Rules for a container's variables, and for fields of the pod that variables and files of volumes may hold."""

from collections.abc import Collection, Iterator
from typing import Final

from mxnet_operator.api.metadata_rules import key_errors
from mxnet_operator.api.pod_sources import variable_errors
from mxnet_operator.api.quantities import quantity
from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.keyed_objects import broken_key_rules
from mxnet_operator.local.apiserver.metadata_rules import dns_label_errors, subdomain_errors
from mxnet_operator.local.apiserver.pod_rules.fields import no_backstep_errors
from mxnet_operator.local.apiserver.statuses import required, unsupported

FIELDS_OF_FILES: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_FIELDS_OF_VARIABLES: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_FIELDS: Final = {
    *FIELDS_OF_FILES,
    *_FIELDS_OF_VARIABLES,
    "spec.host",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
}
_SUBSCRIPTED: Final = ("metadata.annotations", "metadata.labels")
_RESOURCES: Final = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_BYTES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS: Final = {
    "cpu": (("1m", "1"), "1m and 1 are supported with the cpu resource"),
    "memory": (_BYTES, f"{', '.join(_BYTES)} are supported with the memory resource"),
    "ephemeral-storage": (_BYTES, f"{', '.join(_BYTES)} are supported with the local ephemeral storage resource"),
    "hugepages": (_BYTES, f"{', '.join(_BYTES)} are supported with the hugepages resource"),
}
_NAME_RULE: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def environment_errors(path: str, container: Object) -> Iterator[FieldError]:
    """Validate a container's `env` and `envFrom`."""
    for position, variable in enumerate(container.get("env") or ()):
        where = f"{path}.env[{position}]"
        if not variable.get("name"):
            yield required(f"{where}.name")
        else:
            yield from _name_errors(f"{where}.name", variable["name"])
        yield from _source_errors(f"{where}.valueFrom", variable.get("valueFrom") or {})
        yield from variable_errors(variable, where)
    for position, source in enumerate(container.get("envFrom") or ()):
        where = f"{path}.envFrom[{position}]"
        if prefix := source.get("prefix"):
            yield from _name_errors(f"{where}.prefix", prefix)
        references = [field for field in ("configMapRef", "secretRef") if source.get(field) is not None]
        for field in references:
            yield from _reference_errors(f"{where}.{field}.name", source[field].get("name") or "")
        if not references:
            yield invalid(f"{path}.envFrom", "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(references) > 1:
            yield invalid(f"{path}.envFrom", "", "may not have more than one field specified at a time")


def _name_errors(path: str, name: str) -> Iterator[FieldError]:
    if "=" in name or not (name.isascii() and name.isprintable()):
        yield invalid(path, name, _NAME_RULE)


def _reference_errors(path: str, name: str) -> Iterator[FieldError]:
    yield from subdomain_errors(path, name) if name else (required(path),)


def _source_errors(path: str, sources: Object) -> Iterator[FieldError]:
    if (field := sources.get("fieldRef")) is not None:
        yield from field_errors(f"{path}.fieldRef", field, _FIELDS_OF_VARIABLES)
    if (resource := sources.get("resourceFieldRef")) is not None:
        yield from resource_field_errors(f"{path}.resourceFieldRef", resource)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (key := sources.get(kind)) is not None:
            yield from subdomain_errors(f"{path}.{kind}.name", key.get("name") or "")
            yield from _key_errors(f"{path}.{kind}.key", key.get("key") or "")
    if (file := sources.get("fileKeyRef")) is not None:
        yield from _file_key_errors(f"{path}.fileKeyRef", file)


def _key_errors(path: str, key: str) -> Iterator[FieldError]:
    if not key:
        yield required(path)
        return
    for rule in broken_key_rules(key):
        yield invalid(path, key, rule)


def _file_key_errors(path: str, file: Object) -> Iterator[FieldError]:
    if key := file.get("key"):
        yield from _name_errors(f"{path}.key", key)
    else:
        yield required(f"{path}.key")
    if volume := file.get("volumeName"):
        yield from dns_label_errors(f"{path}.volumeName", volume)
    else:
        yield required(f"{path}.volumeName")
    if file.get("path"):
        yield from no_backstep_errors(f"{path}.path", file["path"])
    else:
        yield required(f"{path}.path")


def field_errors(path: str, selector: Object, allowed: Collection[str]) -> Iterator[FieldError]:
    """Validate a `fieldRef`, which names one of the `allowed` fields, or one label or annotation."""
    field, version = selector.get("fieldPath") or "", selector.get("apiVersion") or "v1"
    if not field:
        yield required(f"{path}.fieldPath")
        return
    of, subscript = _split(field)
    if version != "v1":
        why = f"unsupported pod version: {version}"
    elif subscript is not None and of not in _SUBSCRIPTED:
        why = f"field label does not support subscript: {field}"
    elif subscript is None and field not in _FIELDS:
        why = f"field label not supported: {field}"
    elif subscript is not None:
        key = subscript.lower() if of == "metadata.annotations" else subscript
        yield from key_errors(key, path, key)
        return
    else:
        field = "spec.nodeName" if field == "spec.host" else field
        if field not in allowed:
            yield unsupported(f"{path}.fieldPath", field, allowed)
        return
    yield invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {why}")


def _split(field: str) -> tuple[str, str | None]:
    """Split `metadata.labels['a']` into the field and the key; a field without a subscript has None for the key."""
    of, bracket, key = field.removesuffix("']").partition("['")
    return (of, key) if field.endswith("']") and bracket and of else (field, None)


def resource_field_errors(path: str, selector: Object, *, of_file: bool = False) -> Iterator[FieldError]:
    """Validate a `resourceFieldRef`; in a file of a volume it names its container."""
    resource = selector.get("resource") or ""
    if of_file and not selector.get("containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield unsupported(f"{path}.resource", resource, _RESOURCES)
    divisor = selector.get("divisor") or "0"
    kind = "hugepages" if resource.startswith(_HUGE_PAGES) else resource.partition(".")[2]
    if resource and quantity(divisor) and kind in _DIVISORS:
        values, listed = _DIVISORS[kind]
        if quantity(divisor) not in map(quantity, values):
            yield invalid(f"{path}.divisor", resource, f"only divisor's values {listed}")
