"""PersistentVolumeClaims: their defaults and protection, and what a claim must have to become a folder."""

from collections.abc import Iterator
from typing import Final

from mxnet_operator.api.structural import FieldError
from mxnet_operator.local.apiserver.json_values import Object, at
from mxnet_operator.local.apiserver.statuses import required

PROTECTION: Final = "kubernetes.io/pvc-protection"
"""Finalizer of a claim, which goes once no pod uses the claim."""


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
    if not claim["spec"].get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if at(claim, "spec", "resources", "requests", "storage") is None:
        yield required("spec.resources[storage]")
