"""Resource quantities as manifests write them (`500m`, `1Gi`), and the total requests of a pod."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

_SUFFIXES = {
    "": Decimal(1),
    **{suffix: Decimal(10) ** power for suffix, power in (("n", -9), ("u", -6), ("m", -3))},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]i?|Ki)?)", re.ASCII)
_LARGEST: Final = 24
"""Maximum power of ten of a quantity, and minimum if negated."""

Resources = dict[str, Decimal]


def quantity(text: object) -> Decimal:
    """Return the number that a quantity means, in the resource's own unit (cores, bytes, devices).

    Raises:
        ValueError: it is no quantity, or beyond what any node could have.
    """
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None or (match[3] or "") not in _SUFFIXES:
        raise ValueError(f"{text!r} is not a resource quantity")
    try:
        number = Decimal(match[1] + (match[2] or ""))
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a resource quantity") from error
    if not number:
        return Decimal(0)
    amount = number * _SUFFIXES[match[3] or ""] if abs(number.adjusted()) <= _LARGEST else number
    if abs(amount.adjusted()) > _LARGEST:
        raise ValueError(f"{text!r} is not a resource quantity of a size that a node could have")
    return amount


def amount_text(name: str, amount: Decimal) -> str:
    """Return an amount of a resource for people: bytes in the largest unit that is at most as large, else a number."""
    if name in {"memory", "ephemeral-storage"} or name.startswith("hugepages-"):
        unit = next((unit for unit in ("Ti", "Gi", "Mi", "Ki") if abs(amount) >= _SUFFIXES[unit]), "")
        return f"{float(amount / _SUFFIXES[unit]):.4g}{unit}"
    return f"{float(amount):.10g}"


def container_requests(container: Mapping[str, Any]) -> Resources:
    """Return the requests of one container; a limit without a request is the request (kube-apiserver's default)."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: quantity(amount) for name, amount in asked.items()}


def pod_requests(spec: Mapping[str, Any]) -> Resources:
    """Return the requests of a pod: its containers together, or its largest init container where that is more.

    Raises:
        ValueError: a quantity can't be read.
    """
    total = add(container_requests(container) for container in spec.get("containers") or [])
    for container in spec.get("initContainers") or []:
        for name, amount in container_requests(container).items():
            total[name] = max(total.get(name, Decimal(0)), amount)
    return add([total, {name: quantity(amount) for name, amount in (spec.get("overhead") or {}).items()}])


def written(amount: Decimal) -> str:
    """Return a quantity as a manifest has it, without an exponent."""
    return f"{amount.normalize():f}"


def add(parts: Iterable[Mapping[str, Decimal]]) -> Resources:
    total: Resources = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total
