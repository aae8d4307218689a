"""The volumes of a pod: emptyDir, hostPath and configMap as folders of this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mxnet_operator.local.kubelet.environment import ConfigMaps

KNOWN = ("emptyDir", "hostPath", "configMap")
_SERVICE_ACCOUNT = "kube-api-access-"


class MountError(Exception):
    """A volume can't be made; the message is for the pod's author."""


def config_maps_needed(spec: Mapping[str, Any]) -> set[str]:
    """The names of the ConfigMaps that a pod's volumes are made of."""
    return {each["configMap"]["name"] for each in spec.get("volumes") or [] if each.get("configMap")}


def make_volumes(spec: Mapping[str, Any], folder: Path, config_maps: ConfigMaps) -> dict[str, Path]:
    """Make the pod's volumes under `folder`, or find them there again; returns where each is. Blocks.

    Raises:
        MountError: a volume's type isn't known here, or what it is made of isn't there.
        OSError: the disk says no.
    """
    return {
        volume["name"]: _make(volume, folder / volume["name"], config_maps)
        for volume in spec.get("volumes") or []
        # A real API server adds this one to every pod; there is no service account here to hold its token.
        if not volume["name"].startswith(_SERVICE_ACCOUNT)
    }


def mounts(container: Mapping[str, Any], volumes: Mapping[str, Path]) -> dict[str, Path]:
    """The container's mount paths and the real paths behind them.

    Raises:
        MountError: a mount names no volume, or leads out of it.
    """
    result: dict[str, Path] = {}
    for mount in container.get("volumeMounts") or []:
        if mount["name"].startswith(_SERVICE_ACCOUNT):
            continue
        if mount["name"] not in volumes:
            raise MountError(f'container {container["name"]} mounts volume "{mount["name"]}", which the pod has not')
        inner = mount.get("subPath") or ""
        if ".." in Path(inner).parts or inner.startswith("/"):
            raise MountError(f"subPath {inner} must stay within its volume")
        if mount.get("subPathExpr"):
            raise MountError("subPathExpr isn't known to the local cluster")
        result[mount["mountPath"]] = volumes[mount["name"]] / inner
    return result


def _make(volume: Mapping[str, Any], folder: Path, config_maps: ConfigMaps) -> Path:
    if (host_path := volume.get("hostPath")) is not None:
        return _host_path(volume["name"], host_path)
    if (config_map := volume.get("configMap")) is not None:
        _config_map(volume["name"], config_map, folder, config_maps)
    elif volume.get("emptyDir") is not None:
        folder.mkdir(parents=True, exist_ok=True)
    else:
        kind = next((key for key in volume if key != "name"), "nothing")
        raise MountError(
            f'volume "{volume["name"]}" is of type {kind}; the local cluster knows {", ".join(KNOWN)} only'
        )
    return folder


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


def _config_map(name: str, source: Mapping[str, Any], folder: Path, config_maps: ConfigMaps) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config_map = config_maps.get(source["name"])
    if config_map is None:
        if source.get("optional"):
            return
        raise MountError(f'volume "{name}": configmap "{source["name"]}" not found')
    data = config_map.get("data") or {}
    items = source.get("items") or [{"key": key, "path": key} for key in data]
    for item in items:
        if item["key"] not in data:
            if source.get("optional"):
                continue
            raise MountError(f'volume "{name}": configmap references non-existent config key: {item["key"]}')
        target = folder / item["path"]
        if not target.resolve().is_relative_to(folder.resolve()):
            raise MountError(f'volume "{name}": item path {item["path"]} must stay within the volume')
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(str(data[item["key"]]), encoding="utf-8")
