"""What a user should hear once about a job's manifest: what is overruled, and what this version doesn't act on yet."""

from collections.abc import Iterator

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Event

_OVERRULED = ("restartPolicy", "hostname", "subdomain")


def notices(job: MXJob) -> tuple[Event, ...]:
    """Warnings about a job as the user wrote it (before defaults)."""
    return (*_overruled_by_the_controller(job), *_rewritten(job), *_not_acted_on(job))


def _overruled_by_the_controller(job: MXJob) -> Iterator[Event]:
    for replica_type, spec in job.spec.mx_replica_specs.items():
        fields = [field for field in _OVERRULED if spec.template["spec"].get(field)]
        if fields:
            yield Event(
                "Warning",
                "SetPodTemplate" + fields[0][0].upper() + fields[0][1:],
                f"{replica_type}: the template's {', '.join(fields)} will be overwritten: the controller restarts "
                "replicas and names their pods",
            )


def _rewritten(job: MXJob) -> Iterator[Event]:
    for replica_type, spec in job.spec.mx_replica_specs.items():
        resources = (container.get("resources") or {} for container in spec.template["spec"]["containers"])
        if any(names.OLD_GPU in (each.get("limits") or {}) for each in resources):
            message = f"{replica_type}: the limit {names.OLD_GPU} is taken as {names.GPU}: write that instead"
            yield Event("Warning", "OldGPUResource", message)


def _not_acted_on(job: MXJob) -> Iterator[Event]:
    if job.spec.run_policy.scheduling_policy is not None:
        yield Event("Warning", "FieldNotActedOn", "This version does not act on spec.runPolicy.schedulingPolicy.")
