"""Hera's own objects in a description of a job, as Kubernetes has them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hera.workflows import Env, Resources, Volume
from hera.workflows.env import _BaseEnv
from hera.workflows.env_from import _BaseEnvFrom
from hera.workflows.volume import _BaseVolume

from mxnet_argo.inputs import as_list
from mxnet_argo.values import Value
from mxnet_operator.description import Role
from mxnet_operator.description.pods import ROLES

_LISTS: Final = {"env": _BaseEnv, "env_from": _BaseEnvFrom, "volumes": _BaseVolume}


def in_kubernetes_words(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a description, or of a role, that Hera's objects change.

    Raises:
        ValueError: a volume is one that Argo would make for its own pods.
    """
    changed: dict[str, Any] = {}
    for name, kind in _LISTS.items():
        given = fields.get(name)
        items = as_list(given) if isinstance(given, kind | list | tuple) else []
        if any(isinstance(each, kind) for each in items):
            changed[name] = [_built(each) for each in items]
            if mounts := [each._build_volume_mount() for each in items if getattr(each, "mount_path", None)]:
                changed["volume_mounts"] = [*as_list(fields.get("volume_mounts")), *mounts]
    if isinstance(resources := fields.get("container_resources"), Resources):
        changed["container_resources"] = resources.build()
    for name in ROLES:
        role = fields.get(name)
        if isinstance(role, Role) and (of_role := in_kubernetes_words(vars(role))):
            changed[name] = replace(role, **of_role)
        elif isinstance(role, Mapping) and (of_role := in_kubernetes_words(role)):
            changed[name] = {**role, **of_role}
    return changed


def _built(item: Any) -> Any:
    if isinstance(item, Volume):
        raise ValueError(  # noqa: TRY004 - as every refusal
            f"volumes: Argo would make the claim of Volume {item.name} for its own pods only: make a"
            " PersistentVolumeClaim, and give ExistingVolume(claim_name=...)"
        )
    if isinstance(item, Env) and isinstance(item.value, Value):
        return {"name": item.name, "value": item.value}
    if isinstance(item, _BaseVolume):
        return item._build_volume()
    return item.build() if isinstance(item, _BaseEnv | _BaseEnvFrom) else item
