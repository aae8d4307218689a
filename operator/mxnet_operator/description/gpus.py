"""GPUs of a role: how many, by the name of which resource, and their one limit in its container `mxnet`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.strategic_merge import strategic_merge
from mxnet_operator.api.structural import FieldError
from mxnet_operator.description.checks import DescriptionError
from mxnet_operator.description.pods import Placeholder

Object = dict[str, Any]

_AMOUNTS: Final = ("limits", "requests")


@dataclass(frozen=True)
class GPUs:
    """Number of GPUs of each replica of a role, and the field of the description that has it.

    0 takes away what a manifest asks for.
    """

    field: str
    resource: str
    count: Any


def common_gpus(given: Object, own: Object) -> GPUs | None:
    """Return the GPUs that a description gives each Worker; None where it doesn't, or their role has a number.

    The fields of the role, `own`, may name the resource.

    Raises:
        DescriptionError: the description's resources can't have them.
    """
    if given.get("gpus_per_worker") is None or own.get("gpus") is not None:
        return None
    gpus = GPUs("gpus_per_worker", _resource(given, own), given["gpus_per_worker"])
    _check(gpus, given.get("container_resources"), "container_resources")
    if isinstance(own.get("container_resources"), Placeholder):
        raise _later(gpus)
    return gpus


def role_gpus(given: Object, own: Object, role: str) -> GPUs | None:
    """Return the GPUs that a role has a number of itself.

    Raises:
        DescriptionError: the role's resources can't have them.
    """
    if own.get("gpus") is None:
        return None
    gpus = GPUs(f"{role}.gpus", _resource(given, own), own["gpus"])
    _check(gpus, own.get("container_resources"), f"{role}.container_resources")
    return gpus


def with_gpus(replica_spec: Object, gpus: GPUs | None) -> Object:
    """Return a ReplicaSpec whose container has this limit of GPUs, and no other request of them.

    Raises:
        DescriptionError: its resources are filled in later.
    """
    if gpus is None:
        return replica_spec
    resources: Any = _resources_of(replica_spec)
    amounts = {field: resources.get(field) for field in _AMOUNTS} if isinstance(resources, Mapping) else {}
    if any(isinstance(each, Placeholder) for each in (resources, *amounts.values())):
        raise _later(gpus)
    if not all(isinstance(each, Mapping | None) for each in (resources, *amounts.values())):
        return replica_spec  # validation says what is wrong
    taken = {field: {gpus.resource: None} for field, each in amounts.items() if gpus.resource in (each or ())}
    patch = taken if gpus.count == 0 else {**taken, "limits": {gpus.resource: gpus.count}}
    container = {"name": names.CONTAINER, "resources": patch}
    return strategic_merge(replica_spec, {"template": {"spec": {"containers": [container]}}}) if patch else replica_spec


def _resource(given: Object, own: Object) -> str:
    return own.get("gpu_resource") or given.get("gpu_resource") or names.GPU


def _check(gpus: GPUs, asked: Any, path: str) -> None:
    """Reject another number of GPUs among the resources that stand beside the number."""
    for field in _AMOUNTS:
        amounts = asked.get(field) if isinstance(asked, Mapping) else None
        amount = amounts.get(gpus.resource) if isinstance(amounts, Mapping) else None
        if amount is not None and amount not in (gpus.count, str(gpus.count)):
            detail = f"is {gpus.count}, but {path}.{field}[{gpus.resource}] is {amount!r}: give one of them"
            raise DescriptionError([FieldError(gpus.field, "FieldValueInvalid", detail)])


def _later(gpus: GPUs) -> DescriptionError:
    detail = "the container's resources are filled in later, so the GPUs must be among their limits: leave this out"
    return DescriptionError([FieldError(gpus.field, "FieldValueInvalid", detail)])


def _resources_of(replica_spec: Object) -> Any:
    found: Any = replica_spec
    for key in ("template", "spec", "containers"):
        found = found.get(key) if isinstance(found, dict) else None
    containers = found if isinstance(found, list) else ()
    own = (each for each in containers if isinstance(each, dict) and each.get("name") == names.CONTAINER)
    return next(own, {}).get("resources")
