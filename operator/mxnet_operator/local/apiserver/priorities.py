"""Priority of pods by their PriorityClass, as kube-apiserver's admission plugin Priority sets it."""

from collections.abc import Sequence
from typing import Final

from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import PODS
from mxnet_operator.local.apiserver.statuses import forbidden

_PREEMPTS: Final = "PreemptLowerPriority"
_NO_CLASS: Final[Object] = {"value": 0, "preemptionPolicy": _PREEMPTS}
"""What a pod gets that names no class where none is the default."""
_FROM_SERVER: Final = ("priority", "preemptionPolicy")


def fill_in_class(priority_class: Object) -> None:
    """Set the default values of a PriorityClass, in place."""
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", _PREEMPTS)


def admit_pod(pod: Object, classes: Sequence[Object]) -> None:
    """Set a new pod's priority and preemption policy by its class, or the default one, in place.

    Raises:
        StatusError: 403 for a class that doesn't exist.
    """
    spec = pod["spec"]
    found = min((each for each in classes if each.get("globalDefault")), key=lambda each: each["value"], default=None)
    if wanted := spec.get("priorityClassName"):
        found = next((each for each in classes if each["metadata"]["name"] == wanted), None)
        if found is None:
            raise forbidden(PODS, pod["metadata"].get("name", ""), f"no PriorityClass with name {wanted} was found")
    elif found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    chosen = found or _NO_CLASS
    spec |= {"priority": chosen["value"], "preemptionPolicy": chosen["preemptionPolicy"]}


def kept_by_pod(old: Object, new: Object) -> None:
    """Keep the priority of a pod that is written without it, in place."""
    for field in _FROM_SERVER:
        if field in old["spec"]:
            new["spec"].setdefault(field, old["spec"][field])
