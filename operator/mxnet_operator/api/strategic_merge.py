"""Strategic merge patch: JSON merge patch, except that some lists merge by a key of their items.

Rules: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

from collections.abc import Collection
from typing import Any, Final

from mxnet_operator.api.structural import clone

Object = dict[str, Any]

MERGE_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port"),
    "podIPs": ("ip",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "taints": ("key",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""Merge key by the list's name in any object: the Go types' patchMergeKey (`ports` differ in containers, Services)."""

_MERGED_PRIMITIVES = frozenset({"finalizers"})
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


class MergeKeyError(ValueError):
    """Error that an item of a list that merges by a key lacks that key."""


def strategic_merge(target: Object, patch: Object, *, whole: Collection[str] = ()) -> Object:
    """Return `target` with `patch` applied; neither is changed.

    Args:
        target: Object to be patched.
        patch: What is merged over it.
        whole: Names of lists whose items replace the item of their key, in its place, rather than merge with it.

    Raises:
        MergeKeyError: an item of the patch has no merge key, which the API server rejects.
    """
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive == "replace":
        return {key: clone(value) for key, value in patch.items() if key != "$patch"}
    result = dict(target)
    if "$retainKeys" in patch:
        result = {key: value for key, value in result.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            name = key.removeprefix(_DELETE_FROM)
            result[name] = [each for each in result.get(name) or [] if each not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            old = result.get(key)
            result[key] = strategic_merge(old if isinstance(old, dict) else {}, value, whole=whole)
        elif isinstance(value, list):
            old = result.get(key)
            old = old if isinstance(old, list) else []
            result[key] = _merge_list(key, old, value, patch.get(_ORDER + key), whole)
        else:
            result[key] = value
    return result


def _merge_list(
    name: str, old: list[Any], patch: list[Any], order: list[Any] | None, whole: Collection[str]
) -> list[Any]:
    if name in _MERGED_PRIMITIVES:
        return [*old, *(each for each in patch if each not in old)]
    candidates = MERGE_KEYS.get(name, ())
    merge_key = next((key for key in candidates if any(isinstance(e, dict) and key in e for e in (*patch, *old))), None)
    if merge_key is None:
        return [clone(each) for each in patch]
    if any(isinstance(each, dict) and each.get("$patch") == "replace" for each in patch):
        return [clone(each) for each in patch if each.get("$patch") != "replace"]
    result = list(old)
    for item in patch:
        if not isinstance(item, dict) or merge_key not in item:
            raise MergeKeyError(f"map: {item} does not contain declared merge key: {merge_key}")
        same = (i for i, each in enumerate(result) if isinstance(each, dict) and each.get(merge_key) == item[merge_key])
        at = next(same, None)
        if item.get("$patch") == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(strategic_merge({}, item))
        else:
            result[at] = strategic_merge({} if name in whole else result[at], item, whole=whole)
    if order:
        wanted = [each.get(merge_key) for each in order if isinstance(each, dict)]
        result.sort(key=lambda e: wanted.index(e[merge_key]) if e[merge_key] in wanted else len(wanted))
    return result
