"""Warnings about a job's manifest, posted once: fields that are overruled, and those without effect here."""

from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Effects, Event
from mxnet_operator.plan.fewer_workers import min_workers_ignored
from mxnet_operator.plan.replicas import is_begun
from mxnet_operator.plan.state import JobState

_GPUS: Final = (names.GPU, names.OLD_GPU, "amd.com/gpu")
_OVERRULED: Final = ("restartPolicy", "hostname", "subdomain")


def noticed(state: JobState) -> Effects:
    """Post the Warnings about a job that was not begun yet."""
    if is_begun(state.job.status):
        return Effects()
    asked, of_integrations = state.asked, (event for each in state.integrations for event in each.notices(state))
    of_manifest = (*_overruled_by_the_controller(asked), *_rewritten(asked), *unused_gpus(asked))
    return Effects(events=(*of_manifest, *min_workers_ignored(state.specified), *of_integrations))


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


def workers_alone(job: MXJob) -> Iterator[Event]:
    """Yield a Warning for several Workers without a Server, of which each trains a model of its own.

    No Event of the job says so: a script may share its model in another way, such as by Horovod.
    """
    types = job.spec.specs_in_use.items()
    counts = {names.canonical_type(name): 1 if spec.replicas is None else spec.replicas for name, spec in types}
    if counts.get(names.WORKER, 0) > 1 and not counts.get(names.SERVER):
        yield Event(
            "Warning",
            "WorkersAlone",
            f"{counts[names.WORKER]} Workers and no Server: MXNet's kvstore needs one, and a Scheduler; without, each"
            " Worker trains a model of its own",
        )


def _gpus(container: dict[str, Any]) -> Iterator[str]:
    resources = container.get("resources") or {}
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    for name, amount in amounts.items():
        if (name in _GPUS or name.startswith("nvidia.com/mig-")) and str(amount).strip() not in {"0", ""}:
            yield name
