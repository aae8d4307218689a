"""Priority of pods, as kube-apiserver's admission plugin Priority has it: a PriorityClass by name, or the default one.

Its words are those of kubernetes/plugin/pkg/admission/priority and of the storage of scheduling.k8s.io, 1.36.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import PODS, PRIORITY_CLASSES
from mxnet_operator.local.apiserver.statuses import forbidden, forbidden_field, unsupported

_HIGHEST_OF_USERS: Final = 1_000_000_000
_RESERVED: Final = "system-"
_PREEMPTS, _NEVER = "PreemptLowerPriority", "Never"
_NO_CLASS: Final[Object] = {"value": 0, "preemptionPolicy": _PREEMPTS}
"""What a pod gets that names no class where none is the default."""
_FROM_SERVER: Final = ("priority", "preemptionPolicy")

SYSTEM_CLASSES: Final[tuple[Object, ...]] = tuple(
    {"metadata": {"name": name}, "value": value, "description": description}
    for name, value, description in (
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if"
            " necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    )
)
"""The classes that every cluster has."""
_SYSTEM_VALUES: Final = {each["metadata"]["name"]: each["value"] for each in SYSTEM_CLASSES}


def fill_in_class(priority_class: Object) -> None:
    """Set the default values of a PriorityClass, in place."""
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", _PREEMPTS)


def admit_pod(pod: Object, classes: Sequence[Object]) -> None:
    """Set a new pod's priority and preemption policy by its class, in place.

    Raises:
        StatusError: 403 for a class that doesn't exist, or where the pod says otherwise itself.
    """
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    found = _default(classes)
    if wanted := spec.get("priorityClassName"):
        found = next((each for each in classes if each["metadata"]["name"] == wanted), None)
        if found is None:
            raise forbidden(PODS, name, f"no PriorityClass with name {wanted} was found")
    elif found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    chosen = found or _NO_CLASS
    for field, what, source in (
        ("priority", "integer value of priority", "value"),
        ("preemptionPolicy", "string value of PreemptionPolicy", "preemptionPolicy"),
    ):
        computed = chosen[source]
        if spec.setdefault(field, computed) != computed:
            why = (
                f"the {what} ({spec[field]}) must not be provided in pod spec; priority admission controller computed"
                f" {computed} from the given PriorityClass name"
            )
            raise forbidden(PODS, name, why)


def kept_by_pod(old: Object, new: Object) -> None:
    """Keep the priority of a pod that is written without it, in place."""
    for field in _FROM_SERVER:
        if field in old["spec"]:
            new["spec"].setdefault(field, old["spec"][field])


def admit_class(priority_class: Object, classes: Sequence[Object]) -> None:
    """Reject a second default class.

    Raises:
        StatusError: 403.
    """
    default, name = _default(classes), priority_class["metadata"].get("name", "")
    if priority_class.get("globalDefault") and default and default["metadata"]["name"] != name:
        why = f"PriorityClass {default['metadata']['name']} is already marked as default. Only one default can exist"
        raise forbidden(PRIORITY_CLASSES, name, why)


def check_deletion(name: str) -> None:
    """Reject the deletion of a class that every cluster has.

    Raises:
        StatusError: 403.
    """
    if name in _SYSTEM_VALUES:
        raise forbidden(PRIORITY_CLASSES, name, "this is a system priority class and cannot be deleted")


def class_errors(priority_class: Object) -> Iterator[FieldError]:
    """Validate a PriorityClass."""
    name, value = priority_class["metadata"].get("name", ""), priority_class["value"]
    if name.startswith(_RESERVED):
        if why := _no_system_class(name, value, is_default=bool(priority_class.get("globalDefault"))):
            detail = f"priority class names with '{_RESERVED}' prefix are reserved for system use only. error: {why}"
            yield forbidden_field("metadata.name", detail)
    elif value > _HIGHEST_OF_USERS:
        yield forbidden_field("value", f"maximum allowed value of a user defined priority is {_HIGHEST_OF_USERS}")
    if (policy := priority_class["preemptionPolicy"]) not in (_PREEMPTS, _NEVER):
        yield unsupported("preemptionPolicy", policy, (_PREEMPTS, _NEVER))


def class_change_errors(old: Object, new: Object) -> Iterator[FieldError]:
    """Validate the update of a PriorityClass."""
    if old["value"] != new["value"]:
        yield forbidden_field("value", "may not be changed in an update.")
    if old["preemptionPolicy"] != new["preemptionPolicy"]:
        yield invalid("preemptionPolicy", new["preemptionPolicy"], "field is immutable")


def _default(classes: Sequence[Object]) -> Object | None:
    """Return the default class: of several, which only a race on a real server makes, that of the lowest value."""
    return min((each for each in classes if each.get("globalDefault")), key=lambda each: each["value"], default=None)


def _no_system_class(name: str, value: int, *, is_default: bool) -> str:
    if name not in _SYSTEM_VALUES:
        return f"{name} is not a known system priority class"
    if value != _SYSTEM_VALUES[name]:
        return f"value of {name} PriorityClass must be {_SYSTEM_VALUES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""
