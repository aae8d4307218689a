"""Defaults of an MXJob: training-operator 1.8.1's."""

from typing import Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.formats.templates import with_port
from mxnet_operator.api.types import MXJob, ReplicaSpec, RunPolicy

RESTART_POLICY: Final = "Never"
CLEAN_POD_POLICY = "None"
BACKOFF_LIMIT = 6
"""Default backoffLimit, Kubernetes' own Job's (1.8.1 had no working limit)."""


def with_defaults(job: MXJob) -> MXJob:
    """Return the job with every default filled in and canonical replica types (`worker` becomes `Worker`).

    Types come in the order of `names.REPLICA_TYPES`. Expects a valid job; unknown types are left out.
    """
    by_type = {names.canonical_type(name): spec for name, spec in job.spec.mx_replica_specs.items()}
    specs = {
        replica_type: _replica_with_defaults(by_type[replica_type])
        for replica_type in names.REPLICA_TYPES
        if replica_type in by_type
    }
    spec = msgspec.structs.replace(
        job.spec, mx_replica_specs=specs, run_policy=_run_policy_with_defaults(job.spec.run_policy)
    )
    return msgspec.structs.replace(job, spec=spec)


def _run_policy_with_defaults(policy: RunPolicy) -> RunPolicy:
    return msgspec.structs.replace(
        policy,
        clean_pod_policy=policy.clean_pod_policy or CLEAN_POD_POLICY,
        backoff_limit=BACKOFF_LIMIT if policy.backoff_limit is None else policy.backoff_limit,
        suspend=bool(policy.suspend),
        fail_fast=policy.fail_fast is not False,
    )


def _replica_with_defaults(spec: ReplicaSpec) -> ReplicaSpec:
    return msgspec.structs.replace(
        spec,
        replicas=1 if spec.replicas is None else spec.replicas,
        restart_policy=spec.restart_policy or RESTART_POLICY,
        template=with_port(spec.template, names.DEFAULT_PORT, protocol="TCP"),
    )
