"""Rules for the volumes of a pod."""

from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api.pod_sources import VOLUME_TYPES, volume_errors
from mxnet_operator.api.quantities import quantity
from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.metadata_rules import dns_label_errors
from mxnet_operator.local.apiserver.pod_rules.fields import (
    choice_errors,
    file_name_errors,
    mode_errors,
    no_backstep_errors,
)
from mxnet_operator.local.apiserver.pod_rules.variables import FIELDS_OF_FILES, field_errors, resource_field_errors
from mxnet_operator.local.apiserver.statuses import forbidden_field, required

_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_TWICE: Final = "conflicting duplicate paths"


def all_volume_errors(spec: Object, valid: list[str]) -> Iterator[FieldError]:
    """Validate the volumes of a pod; the names of the valid ones, which a container may mount, are added to `valid`."""
    for position, volume in enumerate(spec.get("volumes") or ()):
        path, name = f"spec.volumes[{position}]", volume.get("name") or ""
        found = [*_source_errors(path, volume), *volume_errors(volume, path)]
        found += dns_label_errors(f"{path}.name", name) if name else [required(f"{path}.name")]
        if name in valid:
            found.append(FieldError(f"{path}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"'))
        if not found:
            valid.append(name)
        yield from found


def _source_errors(path: str, volume: Object) -> Iterator[FieldError]:
    kind = next((name for name in VOLUME_TYPES if volume.get(name) is not None), "")
    source: Object = volume.get(kind) or {}
    where = f"{path}.{kind}"
    if kind == "emptyDir":
        if quantity(source.get("sizeLimit") or 0) < 0:
            yield forbidden_field(f"{where}.sizeLimit", "SizeLimit field must be a valid resource quantity")
    elif kind == "hostPath":
        yield from _host_path_errors(where, source)
    elif kind in ("secret", "configMap"):
        yield from _needed(where, source, "secretName" if kind == "secret" else "name")
        yield from mode_errors(where, source, "defaultMode")
        yield from _item_errors(where, source)
    elif kind == "persistentVolumeClaim":
        yield from _needed(where, source, "claimName")
    elif kind == "nfs":
        yield from _needed(where, source, "server", "path")
        if not (source.get("path") or "").startswith("/"):
            yield invalid(f"{where}.path", source.get("path") or "", "must be an absolute path")
    elif kind == "downwardAPI":
        yield from mode_errors(where, source, "defaultMode")
        for file in source.get("items") or ():
            yield from _downward_file_errors(where, file)
    elif kind == "projected":
        yield from mode_errors(where, source, "defaultMode")
        yield from _projected_errors(where, source)


def _needed(path: str, source: Object, *fields: str) -> Iterator[FieldError]:
    for field in fields:
        if not source.get(field):
            yield required(f"{path}.{field}")


def _host_path_errors(path: str, source: Object) -> Iterator[FieldError]:
    if not source.get("path"):
        yield required(f"{path}.path")
        return
    yield from no_backstep_errors(f"{path}.path", source["path"])
    yield from choice_errors(path, source, "type", _HOST_PATH_TYPES)


def _item_errors(path: str, source: Object) -> Iterator[FieldError]:
    for position, item in enumerate(source.get("items") or ()):
        yield from _key_to_path_errors(f"{path}.items[{position}]", item)


def _key_to_path_errors(path: str, item: Object) -> Iterator[FieldError]:
    yield from _needed(path, item, "key")
    yield from file_name_errors(f"{path}.path", item.get("path") or "")
    yield from mode_errors(path, item, "mode")


def _downward_file_errors(path: str, file: Object) -> Iterator[FieldError]:
    yield from file_name_errors(f"{path}.path", file.get("path") or "")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        yield from field_errors(f"{path}.fieldRef", field, FIELDS_OF_FILES)
        if resource is not None:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        yield from resource_field_errors(f"{path}.resourceFieldRef", resource, of_file=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from mode_errors(path, file, "mode")


def _projected_errors(path: str, projected: Object) -> Iterator[FieldError]:
    taken: set[str] = set()

    def twice(file: Object, shown: Any) -> Iterator[FieldError]:
        name = file.get("path") or ""
        if name in taken:
            yield invalid(path, shown, _TWICE)
        if name:
            taken.add(name)

    for position, source in enumerate(projected.get("sources") or ()):
        where = f"{path}.sources[{position}]"
        for kind in ("secret", "configMap"):
            if (keyed := source.get(kind)) is None:
                continue
            yield from _needed(f"{where}.{kind}", keyed, "name")
            for number, item in enumerate(keyed.get("items") or ()):
                yield from _key_to_path_errors(f"{where}.{kind}.items[{number}]", item)
                yield from twice(item, keyed.get("name") or "")
        for file in (source.get("downwardAPI") or {}).get("items") or ():
            yield from _downward_file_errors(f"{where}.downwardAPI", file)
            yield from twice(file, file.get("path"))
        if (token := source.get("serviceAccountToken")) is not None:
            yield from _token_errors(path, where, token)
        if len([value for value in source.values() if value is not None]) > 1:
            yield forbidden_field(where, "may not specify more than 1 volume type per source")


def _token_errors(path: str, where: str, token: Object) -> Iterator[FieldError]:
    seconds = token.get("expirationSeconds", 3600)
    if seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
        yield invalid(f"{where}.serviceAccountToken.expirationSeconds", seconds, detail)
    if seconds > 2**32:
        detail = "may not specify a duration larger than 2^32 seconds"
        yield invalid(f"{where}.serviceAccountToken.expirationSeconds", seconds, detail)
    yield from file_name_errors(f"{path}.path", token.get("path") or "")
