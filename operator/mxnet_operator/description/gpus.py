"""GPUs of a role: how many, by the name of which resource, and their one limit in its container `mxnet`.

A number of 0 takes away what a manifest asks for.
"""

from collections.abc import Mapping
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.strategic_merge import strategic_merge
from mxnet_operator.api.structural import FieldError
from mxnet_operator.description.checks import DescriptionError
from mxnet_operator.description.pods import Placeholder

Object = dict[str, Any]

_AMOUNTS: Final = ("limits", "requests")


def with_common_gpus(replica_spec: Object, given: Object, own: Object) -> Object:
    """Return a ReplicaSpec with the GPUs that a description gives each Worker, unless their role has a number.

    The fields of the role, `own`, may name the resource.

    Raises:
        DescriptionError: the resources can't have them.
    """
    field = "gpus_per_worker"
    if given.get(field) is None or own.get("gpus") is not None:
        return replica_spec
    if isinstance(own.get("container_resources"), Placeholder):
        raise _later(field)
    return _with_gpus(replica_spec, field, given[field], _resource(given, own), said=given)


def with_role_gpus(replica_spec: Object, given: Object, own: Object, role: str) -> Object:
    """Return a ReplicaSpec with the GPUs that a role has a number of itself.

    Raises:
        DescriptionError: the resources can't have them.
    """
    if own.get("gpus") is None:
        return replica_spec
    return _with_gpus(replica_spec, f"{role}.gpus", own["gpus"], _resource(given, own), said=own, path=f"{role}.")


def _with_gpus(replica_spec: Object, field: str, count: Any, resource: str, *, said: Object, path: str = "") -> Object:
    """Return a ReplicaSpec whose container has this limit of GPUs, and no other request of them.

    Another number is rejected among the resources that are `said` beside it, at `path`.
    """
    for kind in _AMOUNTS:
        amount = _amount(said.get("container_resources"), kind, resource)
        if amount is not None and amount not in (count, str(count)):
            other = f"{path}container_resources.{kind}[{resource}]"
            raise _error(field, f"is {count}, but {other} is {amount!r}: give one of them")
    resources: Any = _resources_of(replica_spec)
    amounts = {kind: resources.get(kind) for kind in _AMOUNTS} if isinstance(resources, Mapping) else {}
    if any(isinstance(each, Placeholder) for each in (resources, *amounts.values())):
        raise _later(field)
    if not all(isinstance(each, Mapping | None) for each in (resources, *amounts.values())):
        return replica_spec  # validation says what is wrong
    taken = {kind: {resource: None} for kind, each in amounts.items() if resource in (each or ())}
    patch = taken if count == 0 else {**taken, "limits": {resource: count}}
    container = {"name": names.CONTAINER, "resources": patch}
    return strategic_merge(replica_spec, {"template": {"spec": {"containers": [container]}}}) if patch else replica_spec


def _resource(given: Object, own: Object) -> str:
    return own.get("gpu_resource") or given.get("gpu_resource") or names.GPU


def _amount(resources: Any, kind: str, resource: str) -> Any:
    amounts = resources.get(kind) if isinstance(resources, Mapping) else None
    return amounts.get(resource) if isinstance(amounts, Mapping) else None


def _later(field: str) -> DescriptionError:
    why = "the container's resources are filled in later, so the GPUs must be among their limits: leave this out"
    return _error(field, why)


def _error(field: str, detail: str) -> DescriptionError:
    return DescriptionError([FieldError(field, "FieldValueInvalid", detail)])


def _resources_of(replica_spec: Object) -> Any:
    found: Any = replica_spec
    for key in ("template", "spec", "containers"):
        found = found.get(key) if isinstance(found, dict) else None
    containers = found if isinstance(found, list) else ()
    own = (each for each in containers if isinstance(each, dict) and each.get("name") == names.CONTAINER)
    return next(own, {}).get("resources")
