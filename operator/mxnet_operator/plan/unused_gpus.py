"""Warnings about replicas that request a GPU and never use it, as in published manifests of older operators.

ps-lite's scheduler and servers, and TVM's tracker, never leave the host's memory. A GPU that they hold keeps the next
job waiting.
"""

from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Event

_GPUS: Final = (names.GPU, names.OLD_GPU, "amd.com/gpu")


def unused_gpus(job: MXJob) -> Iterator[Event]:
    """Yield a Warning for each such replica type of a job as its user wrote it."""
    for replica_type, spec in job.spec.specs_in_use.items():
        asked = sorted({name for each in spec.template["spec"]["containers"] for name in _gpus(each)})
        row = TYPES.get(names.canonical_type(replica_type) or "")
        if asked and row is not None and not row.computes:
            yield Event(
                "Warning",
                "UnusedGPU",
                f"{replica_type}: the template asks for {', '.join(asked)}, which a {replica_type} never uses; no other"
                " pod can use it meanwhile: remove it from this template",
            )


def _gpus(container: dict[str, Any]) -> Iterator[str]:
    resources = container.get("resources") or {}
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    for name, amount in amounts.items():
        if (name in _GPUS or name.startswith("nvidia.com/mig-")) and str(amount).strip() not in {"0", ""}:
            yield name
