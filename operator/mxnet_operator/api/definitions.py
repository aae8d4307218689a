"""Sets of CustomResourceDefinitions: those of every installation, and those of the older kinds."""

from typing import Any

from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.api.kinds import ALL, LEGACY


def definitions() -> list[dict[str, Any]]:
    """Return the CRDs of kubeflow.org, which every installation has."""
    return [custom_resource_definition(kind) for kind in ALL if kind not in LEGACY]


def legacy_definitions() -> list[dict[str, Any]]:
    """Return the CRDs of the overlay `legacy`: other groups' kinds, which make plain `kubectl get mxjobs` ambiguous."""
    return [custom_resource_definition(kind) for kind in LEGACY]
