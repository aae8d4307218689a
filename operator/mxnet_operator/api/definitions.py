"""Which CustomResourceDefinitions are installed together: those of every installation, and the older kinds' besides."""

from typing import Any

from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.api.kinds import ALL, LEGACY


def definitions() -> list[dict[str, Any]]:
    """Those of kubeflow.org, which every installation has."""
    return [custom_resource_definition(kind) for kind in ALL if kind not in LEGACY]


def legacy_definitions() -> list[dict[str, Any]]:
    """Those of the overlay `legacy`: the kinds of other groups, which make plain `kubectl get mxjobs` ambiguous."""
    return [custom_resource_definition(kind) for kind in LEGACY]
