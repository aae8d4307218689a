"""Headless Services of a job: the root's, whose name 1.8.1 gave to ps-lite, and the pods' subdomain."""

from typing import Any, Literal

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders.environment import port_of
from mxnet_operator.builders.metadata import job_labels, owner_reference, replica_labels


def build_service(job: MXJob, name: str, role: Literal["root", "replicas"]) -> dict[str, Any]:
    """Return the manifest of a Service of a job with defaults.

    Both publish addresses that are not ready: the processes look for each other before any of them could be.
    """
    specs = job.spec.specs_in_use
    if role == "root":
        first = next(each for each in specs if names.replica_name(job.metadata.name, each, 0) == name)
        selector = replica_labels(job, first, 0)
    else:
        first = next(iter(specs))  # With defaults, a root type comes first.
        selector = job_labels(job)
    port = port_of(specs[first])
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": job_labels(job),
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector,
            "ports": [{"name": names.PORT_NAME, "port": port, "targetPort": port, "protocol": "TCP"}],
        },
    }
