"""Which pods and Services a running job must have, and which of them are missing."""

from collections.abc import Iterator

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import CreatePod, CreateService
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.replicas import Outcome, Replica


def missing_children(
    job: MXJob, replicas: tuple[Replica, ...], observed: Observed
) -> tuple[CreateService | CreatePod, ...]:
    """What to create: Services first, so that names resolve when pods start; then pods, the root's first."""
    existing = {service.name for service in observed.services}
    services = (service for service in _services(job, replicas) if service.name not in existing)
    pods = (
        CreatePod(replica.type, replica.index, job.status.restarts)
        for replica in replicas
        if replica.outcome is Outcome.MISSING
    )
    return (*services, *pods)


def _services(job: MXJob, replicas: tuple[Replica, ...]) -> Iterator[CreateService]:
    for replica in replicas:
        if replica.type in names.ROOT_TYPES:
            yield CreateService(names.replica_name(job.metadata.name, replica.type, replica.index), "root")
    yield CreateService(names.subdomain(job.metadata.name), "replicas")
