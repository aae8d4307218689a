"""Services of a job: one for each root replica, and the subdomain of all pods."""

from collections.abc import Iterator

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import CreateService, DeleteService
from mxnet_operator.plan.children import ChildRule, ChildView


class ServiceView(ChildView, frozen=True, kw_only=True, gc=False):
    """Observed Service of a job."""


def wanted_services(job: MXJob) -> tuple[CreateService, ...]:
    """Return the Services of a job with defaults."""
    return tuple(_services(job))


def _services(job: MXJob) -> Iterator[CreateService]:
    for replica_type, spec in job.spec.mx_replica_specs.items():
        if TYPES[replica_type].is_root:
            for index in range(spec.replicas or 0):
                yield CreateService(names.replica_name(job.metadata.name, replica_type, index), "root")
    yield CreateService(names.subdomain(job.metadata.name), "replicas")


SERVICES = ChildRule(ServiceView, wanted_services, DeleteService)
