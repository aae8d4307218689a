"""Resource quantities as manifests write them (`500m`, `1Gi`), and what a pod asks for in total."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

_SUFFIXES = {
    "": Decimal(1),
    **{suffix: Decimal(10) ** power for suffix, power in (("n", -9), ("u", -6), ("m", -3))},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]i?|Ki)?)")

Resources = dict[str, Decimal]


def quantity(text: object) -> Decimal:
    """The number that a quantity means, in the resource's own unit (cores, bytes, devices).

    Raises:
        ValueError: it is no quantity.
    """
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None or (match[3] or "") not in _SUFFIXES:
        raise ValueError(f"{text!r} is not a resource quantity")
    return Decimal(match[1] + (match[2] or "")) * _SUFFIXES[match[3] or ""]


def container_requests(container: Mapping[str, Any]) -> Resources:
    """What one container asks for; a limit without a request is the request (kube-apiserver's default)."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: quantity(amount) for name, amount in asked.items()}


def pod_requests(spec: Mapping[str, Any]) -> Resources:
    """What a pod takes of its node: its containers together, or its largest init container where that is more.

    Raises:
        ValueError: a quantity can't be read.
    """
    total = add(container_requests(container) for container in spec.get("containers") or [])
    for container in spec.get("initContainers") or []:
        for name, amount in container_requests(container).items():
            total[name] = max(total.get(name, Decimal(0)), amount)
    return add([total, {name: quantity(amount) for name, amount in (spec.get("overhead") or {}).items()}])


def add(parts: Iterable[Mapping[str, Decimal]]) -> Resources:
    """The sum of several, resource by resource."""
    total: Resources = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total
