"""Warnings about a job's manifest, posted once: fields that are overruled, and those without effect here."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Event
from mxnet_operator.plan.times import DEFAULT, Policy

_GPUS: Final = (names.GPU, names.OLD_GPU, "amd.com/gpu")
_OVERRULED: Final = ("restartPolicy", "hostname", "subdomain")


def notices(job: MXJob, *, has_gangs: bool = False, policy: Policy = DEFAULT) -> tuple[Event, ...]:
    """Return Warnings about a job as written (before defaults); `has_gangs` where a gang scheduler is served."""
    return (
        *_overruled_by_the_controller(job),
        *_rewritten(job),
        *unused_gpus(job),
        *_queued_twice(job),
        *(() if has_gangs else _not_acted_on(job, policy)),
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


def _queued_twice(job: MXJob) -> Iterator[Event]:
    """Yield the Warning for pods with Kueue's own queue label, of which Kueue would count each by itself.

    A group of fixed names hangs when one of its pods ends.
    """
    for replica_type, spec in job.spec.specs_in_use.items():
        labels = (spec.template.get("metadata") or {}).get("labels") or {}
        found = [label for label in (names.QUEUE_LABEL, names.POD_GROUP_LABEL) if label in labels]
        if found:
            message = (
                f"{replica_type}: the template has the label {', '.join(found)}: Kueue then admits pod by pod or by pod"
                " group, which hangs when a gang is preempted, restarted or deleted while it waits. Remove it, and put"
                f" {names.QUEUE_LABEL} on the MXJob itself"
            )
            yield Event("Warning", "KueuePodGroup", message)


def _not_acted_on(job: MXJob, policy: Policy) -> Iterator[Event]:
    """Yield the fields that only a gang scheduler acts on; scheduleTimeoutSeconds is the controller's own."""
    scheduling = job.spec.run_policy.scheduling_policy
    asked = {} if scheduling is None else msgspec.to_builtins(scheduling)
    why = "this cluster serves no gang scheduler that this controller uses (--gang-scheduling)"
    acted_on = {"scheduleTimeoutSeconds"}
    if policy.pods_tell_their_gang:
        acted_on |= {"minAvailable", "priorityClass"}
        why = "the local cluster has one queue, and goes by what the pods themselves request"
    if fields := sorted(set(asked) - acted_on):
        message = f"Without effect in spec.runPolicy.schedulingPolicy: {', '.join(fields)}, since {why}"
        yield Event("Warning", "UnsupportedField", message)


def unused_gpus(job: MXJob) -> Iterator[Event]:
    """Yield a Warning for each replica type of a job as written that requests a GPU and never uses it.

    ps-lite's scheduler and servers, and TVM's tracker, never leave the host's memory. A GPU that they hold keeps the
    next job waiting.
    """
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
