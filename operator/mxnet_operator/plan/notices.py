"""What a user should hear once about a job's manifest: what is overruled, and what this version doesn't act on yet."""

from collections.abc import Iterator

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Event

_OVERRULED = ("restartPolicy", "hostname", "subdomain")


def notices(job: MXJob) -> tuple[Event, ...]:
    """Warnings about a job as the user wrote it (before defaults)."""
    return (*_overruled_by_the_controller(job), *_not_acted_on(job))


def fields_not_acted_on(job: MXJob) -> tuple[str, ...]:
    """Paths of fields that are kept and have no effect in this version, as `spec.runPolicy.suspend`.

    `docs/limits.md` lists them for users; the list shrinks with each release.
    """
    return tuple(_without_effect(job))


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


def _not_acted_on(job: MXJob) -> Iterator[Event]:
    fields = fields_not_acted_on(job)
    if fields:
        yield Event("Warning", "FieldNotActedOn", f"This version does not act on {', '.join(fields)}.")


def _without_effect(job: MXJob) -> Iterator[str]:
    if job.spec.run_policy.scheduling_policy is not None:
        yield "spec.runPolicy.schedulingPolicy"
