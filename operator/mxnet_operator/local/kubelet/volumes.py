"""Volumes of a pod as folders of this machine: empty ones, the host's own, and files of what the API server has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mxnet_operator.local.apiserver.keyed_objects import KEYED_KINDS, KeyedKind, KeyedObjects, Reference
from mxnet_operator.local.kubelet.environment import ConfigError, expand_fully

SUPPORTED = ("emptyDir", "hostPath", "persistentVolumeClaim", "configMap", "secret")
_SERVICE_ACCOUNT = "kube-api-access-"
_MODE = 0o644


class MountError(Exception):
    """A volume can't be set up; the message is for the pod's author."""


def references(spec: Mapping[str, Any]) -> set[Reference]:
    """Collect the ConfigMaps and Secrets of a pod's volumes."""
    named = (
        (kind, (volume.get(kind.volume) or {}).get(kind.name_field))
        for volume in spec.get("volumes") or []
        for kind in KEYED_KINDS
    )
    return {(kind, name) for kind, name in named if name}


def make_volumes(
    pod: Mapping[str, Any], folder: Path, objects: KeyedObjects, claimed: Mapping[str, Path]
) -> dict[str, Path]:
    """Make the pod's volumes under `folder`, or find existing ones; returns the path of each. Blocks.

    `claimed` has the folders of its PersistentVolumeClaims, by the claims' names.

    Raises:
        MountError: a volume's type isn't supported, or its source doesn't exist.
        OSError: the file system reports an error.
    """
    return {
        volume["name"]: claimed[volume["persistentVolumeClaim"]["claimName"]]
        if volume.get("persistentVolumeClaim")
        else _make(volume, folder / volume["name"], objects)
        for volume in pod["spec"].get("volumes") or []
        # A real API server adds this one to every pod; there is no service account here to hold its token.
        if not volume["name"].startswith(_SERVICE_ACCOUNT)
    }


def mounts(container: Mapping[str, Any], volumes: Mapping[str, Path], values: Mapping[str, str]) -> dict[str, Path]:
    """Map the container's mount paths to the real paths of their volumes; makes the folder of a `subPath`.

    `values` are the container's variables, of which a `subPathExpr` is made.

    Raises:
        MountError: a mount names no volume, or leads out of it.
        OSError: the folder can't be made.
    """
    result: dict[str, Path] = {}
    for mount in container.get("volumeMounts") or []:
        if mount["name"].startswith(_SERVICE_ACCOUNT):
            continue
        if mount["name"] not in volumes:
            raise MountError(f'container {container["name"]} mounts volume "{mount["name"]}", which the pod lacks')
        inner = mount.get("subPath") or _expanded(mount.get("subPathExpr") or "", values)
        if ".." in Path(inner).parts or inner.startswith("/"):
            raise MountError(f"subPath {inner} must stay within its volume")
        real = volumes[mount["name"]] / inner
        if not real.exists():  # it may be a file
            real.mkdir(parents=True, exist_ok=True)
        result[mount["mountPath"]] = real
    return result


def _expanded(expression: str, values: Mapping[str, str]) -> str:
    try:
        return expand_fully(expression, values)
    except ConfigError as error:
        raise MountError(f"subPathExpr {expression}: {error}") from error


def _make(volume: Mapping[str, Any], folder: Path, objects: KeyedObjects) -> Path:
    name = volume["name"]
    if (host_path := volume.get("hostPath")) is not None:
        return _host_path(name, host_path)
    types = [key for key, source in volume.items() if key != "name" and source is not None]
    if types in ([], ["emptyDir"]):  # the API server's default
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    for kind in KEYED_KINDS:
        if (source := volume.get(kind.volume)) is not None:
            return _keyed(name, kind, source, folder, objects)
    raise MountError(f'volume "{name}" is of type {types[0]}; the local cluster supports {", ".join(SUPPORTED)}')


def _host_path(name: str, source: Mapping[str, Any]) -> Path:
    path, kind = Path(source["path"]), source.get("type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch(exist_ok=True)
    if kind.startswith("Directory") and not path.is_dir():
        raise MountError(f'volume "{name}": hostPath type check failed: {path} is not a directory')
    if kind.startswith("File") and not path.is_file():
        raise MountError(f'volume "{name}": hostPath type check failed: {path} is not a file')
    return path


def _keyed(volume: str, kind: KeyedKind, source: Mapping[str, Any], folder: Path, objects: KeyedObjects) -> Path:
    """Write the keys of an object as files into the volume's folder, which is not made where one is missing."""
    is_optional, name = source.get("optional"), source[kind.name_field]
    obj = objects.get((kind, name))
    if obj is None and not is_optional:
        raise MountError(f'volume "{volume}": {kind.singular} "{name}" not found')
    contents = kind.files(obj or {})
    items = source.get("items") or [{"key": key, "path": key} for key in contents]
    missing = [item["key"] for item in items if item["key"] not in contents]
    if missing and not is_optional:
        where = f"{kind.singular} references non-existent {kind.key_words} key"
        raise MountError(f'volume "{volume}": {where}: {missing[0]}')
    folder.mkdir(parents=True, exist_ok=True)
    for item in items:
        if item["key"] in missing:
            continue
        target, mode = folder / item["path"], item.get("mode")
        if not target.resolve().is_relative_to(folder.resolve()):
            raise MountError(f'volume "{volume}": item path {item["path"]} must stay within the volume')
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # an earlier attempt may have made it without the right to write
        target.write_bytes(contents[item["key"]])
        target.chmod(source.get("defaultMode", _MODE) if mode is None else mode)
    return folder
