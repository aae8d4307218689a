"""Rules for what a container mounts."""

from collections.abc import Iterator, Sequence
from typing import Final

from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.pod_rules.fields import relative_path_errors
from mxnet_operator.local.apiserver.statuses import forbidden_field, required, unsupported

_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")


def mount_errors(path: str, container: Object, volumes: Sequence[str]) -> Iterator[FieldError]:
    """Validate the volumeMounts of a container of a pod that has these volumes."""
    taken: set[str] = set()
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        where, mount_path, name = f"{path}[{position}]", mount.get("mountPath") or "", mount.get("name") or ""
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield FieldError(f"{where}.name", "FieldValueNotFound", f'Not found: "{name}"')
        if not mount_path:
            yield required(f"{where}.mountPath")
        if mount_path in taken:
            yield invalid(f"{where}.mountPath", mount_path, "must be unique")
        taken.add(mount_path)
        yield from relative_path_errors(f"{path}.subPath", mount.get("subPath") or "")
        if mount.get("subPath") and mount.get("subPathExpr"):
            detail = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{where}.subPathExpr", mount["subPathExpr"], detail)
        yield from relative_path_errors(f"{path}.subPathExpr", mount.get("subPathExpr") or "")
        yield from _propagation_errors(path, mount, container)


def _propagation_errors(path: str, mount: Object, container: Object) -> Iterator[FieldError]:
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None and propagation not in _PROPAGATIONS:
        yield unsupported(f"{path}.mountPropagation", propagation, _PROPAGATIONS)
    if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden_field(f"{path}.mountPropagation", detail)
    if recursive is not None and recursive not in _RECURSIVE:
        yield unsupported(f"{path}.recursiveReadOnly", recursive, _RECURSIVE)
    if recursive in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden_field(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            yield forbidden_field(f"{path}.recursiveReadOnly", detail)
