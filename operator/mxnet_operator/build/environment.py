"""The environment by which the processes of a job find each other: DMLC_* for ps-lite, MX_CONFIG for scripts.

Exactly training-operator 1.8.1's (`facts/mxjob-api.md` section 2), but that a Tuner type gets no DMLC_ROLE: `import
mxnet` takes any role but worker for a server's and never returns.
"""

import json
from typing import Any

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob, ReplicaSpec


def environment(job: MXJob, replica_type: str, index: int) -> dict[str, str]:
    """The variables of one replica of a job with defaults."""
    specs = job.spec.mx_replica_specs
    has_scheduler = _count(specs, names.SCHEDULER) > 0
    variables = {
        "MX_CONFIG": json.dumps(mx_config(job, replica_type, index), separators=(",", ":")),
        "DMLC_PS_ROOT_PORT": str(port_of(specs[names.SCHEDULER]) if has_scheduler else 0),
        "DMLC_PS_ROOT_URI": names.replica_name(job.metadata.name, names.SCHEDULER, 0) if has_scheduler else "",
        "DMLC_NUM_SERVER": str(_count(specs, names.SERVER)),
        "DMLC_NUM_WORKER": str(_count(specs, names.WORKER)),
        "DMLC_USE_KUBERNETES": "1",
    }
    if replica_type not in names.TUNE_TYPES:
        variables["DMLC_ROLE"] = replica_type.lower()
    if replica_type == names.WORKER:
        variables["DMLC_WORKER_ID"] = str(index)
        if not job.spec.run_policy.fail_fast:
            variables["MXJOB_FAILFAST"] = "off"
    return variables


def mx_config(job: MXJob, replica_type: str, index: int) -> dict[str, Any]:
    """What MX_CONFIG says: all addresses by type, the TVM keys by type, and which replica this is."""
    specs = job.spec.mx_replica_specs
    return {
        "cluster": {
            other.lower(): [
                {"url": _address(job.metadata.name, other, position), "port": port_of(spec)}
                for position in range(spec.replicas or 0)
            ]
            for other, spec in specs.items()
        },
        "labels": {other.lower(): _tuner_key(spec) for other, spec in specs.items()},
        "task": {"type": replica_type.lower(), "index": index},
    }


def port_of(spec: ReplicaSpec) -> int:
    """The port named `mxjob-port` of a template with defaults."""
    containers = spec.template["spec"]["containers"]
    main = next(container for container in containers if container["name"] == names.CONTAINER)
    return next(int(port["containerPort"]) for port in main["ports"] if port.get("name") == names.PORT_NAME)


def _address(job: str, replica_type: str, index: int) -> str:
    name = names.replica_name(job, replica_type, index)
    return name if replica_type in names.ROOT_TYPES else f"{name}.{names.subdomain(job)}"


def _tuner_key(spec: ReplicaSpec) -> str:
    annotations = (spec.template.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(names.TUNER_KEY_ANNOTATION, ""))


def _count(specs: dict[str, ReplicaSpec], replica_type: str) -> int:
    return (specs[replica_type].replicas or 0) if replica_type in specs else 0
