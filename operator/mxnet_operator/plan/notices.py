"""Warnings about a job's manifest, posted once: fields that are overruled, and those without effect here."""

from collections.abc import Iterator

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Event
from mxnet_operator.plan.unused_gpus import unused_gpus

_OVERRULED = ("restartPolicy", "hostname", "subdomain")


def notices(job: MXJob) -> tuple[Event, ...]:
    """Return Warnings about a job as written (before defaults)."""
    return (
        *_overruled_by_the_controller(job),
        *_rewritten(job),
        *unused_gpus(job),
    )


def _overruled_by_the_controller(job: MXJob) -> Iterator[Event]:
    for replica_type, spec in job.spec.specs_in_use.items():
        fields = [field for field in _OVERRULED if spec.template["spec"].get(field)]
        if fields:
            yield Event(
                "Warning",
                "SetPodTemplate" + fields[0][0].upper() + fields[0][1:],
                f"{replica_type}: the template's {', '.join(fields)} will be overwritten: the controller restarts "
                "replicas and names their pods",
            )


def _rewritten(job: MXJob) -> Iterator[Event]:
    for replica_type, spec in job.spec.specs_in_use.items():
        resources = (container.get("resources") or {} for container in spec.template["spec"]["containers"])
        if any(names.OLD_GPU in (each.get("limits") or {}) for each in resources):
            message = f"{replica_type}: the limit {names.OLD_GPU} is taken as {names.GPU}: write that instead"
            yield Event("Warning", "OldGPUResource", message)
