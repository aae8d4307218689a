"""Rules of PersistentVolumeClaims, as kube-apiserver has them.

Its words are those of kubernetes/pkg/apis/core/validation 1.36, with what the admission plugin
StorageObjectInUseProtection does.
"""

from collections.abc import Iterator
from typing import Final

from mxnet_operator.api.metadata_rules import SUBDOMAIN, SUBDOMAIN_RULE
from mxnet_operator.api.quantities import quantity
from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object, at
from mxnet_operator.local.apiserver.statuses import forbidden_field, required, unsupported

PROTECTION: Final = "kubernetes.io/pvc-protection"
"""Finalizer of a claim, which goes once no pod uses the claim."""
_ALONE: Final = "ReadWriteOncePod"
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", _ALONE)
_VOLUME_MODES: Final = ("Block", "Filesystem")
_STORAGE: Final = "spec.resources[storage]"
_SHRUNK: Final = "field can not be less than status.capacity"
_FIXED: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def fill_in_claim(claim: Object) -> None:
    """Set the default values of a claim, in place."""
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def protect(claim: Object) -> None:
    """Give a new claim the finalizer that keeps it while a pod uses it, in place."""
    finalizers = claim["metadata"].setdefault("finalizers", [])
    if PROTECTION not in finalizers:
        finalizers.append(PROTECTION)


def claim_errors(claim: Object) -> Iterator[FieldError]:
    """Validate a claim."""
    spec = claim["spec"]
    modes = spec.get("accessModes") or []
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from (unsupported("spec.accessModes", mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES)
    if _ALONE in modes and any(mode != _ALONE and mode in _ACCESS_MODES for mode in modes):
        yield forbidden_field("spec.accessModes", "may not use ReadWriteOncePod with other access modes")
    size = _size(claim)
    if size is None:
        yield required(_STORAGE)
    elif quantity(size) <= 0:
        yield invalid(_STORAGE, size, "must be greater than zero")
    if (storage_class := spec.get("storageClassName")) and not SUBDOMAIN.fullmatch(storage_class):
        yield invalid("spec.storageClassName", storage_class, SUBDOMAIN_RULE)
    if spec["volumeMode"] not in _VOLUME_MODES:
        yield unsupported("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES)


def claim_change_errors(old: Object, new: Object) -> Iterator[FieldError]:
    """Validate what an update changes: the volume is named once, and the size of a bound claim grows."""
    before, after = _fixed(old), _fixed(new)
    if not at(old, "spec", "volumeName"):
        before.pop("volumeName", None)
        after.pop("volumeName", None)
    sizes = _size(old), _size(new)
    if before != after or (sizes[0] != sizes[1] and at(new, "status", "phase") != "Bound"):
        yield forbidden_field("spec", _FIXED)
    capacity = at(old, "status", "capacity", "storage", default="0")
    if None not in sizes and quantity(sizes[1]) < quantity(sizes[0]) and quantity(sizes[1]) <= quantity(capacity):
        yield forbidden_field("spec.resources.requests.storage", _SHRUNK)


def _size(claim: Object) -> str | None:
    found = at(claim, "spec", "resources", "requests", "storage")
    return None if found is None else str(found)


def _fixed(claim: Object) -> Object:
    return {key: value for key, value in claim["spec"].items() if key not in ("resources", "volumeAttributesClassName")}
