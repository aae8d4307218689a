"""Attempts: which pods are on their way out, and what tearing one down changes in status.

The status says so before any pod is deleted. So a failure counts exactly once, however often it is looked at and by
whomever: what an older attempt does counts no more.
"""

from typing import Literal

import msgspec

from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan.observed import Observed, PodView


def restart_scope(job: MXJob) -> Literal["Job", "Replica"]:
    """What a retry of a job with defaults brings back: by default the gang, where there is one.

    No member of a ps-lite gang can be replaced; tuning processes and a lone worker can.
    """
    if job.spec.run_policy.restart_scope is not None:
        return job.spec.run_policy.restart_scope
    specs = job.spec.mx_replica_specs
    if any(TYPES[replica_type].tunes for replica_type in specs):
        return "Replica"
    has_root = any(TYPES[replica_type].is_root for replica_type in specs)
    workers = sum(spec.replicas or 0 for replica_type, spec in specs.items() if TYPES[replica_type].works)
    return "Job" if has_root or workers > 1 else "Replica"


def outgoing(job: MXJob, observed: Observed) -> tuple[PodView, ...]:
    """Pods of an attempt that was torn down: they are to go, and what they do counts no more."""
    if restart_scope(job) == "Job":
        return tuple(pod for pod in observed.pods if pod.attempt < job.status.restarts)
    return tuple(pod for pod in observed.pods if pod.uid in job.status.restarting_pods)


def torn_down(job: MXJob, observed: Observed, pods: tuple[PodView, ...], failures: int) -> MXJobStatus:
    """The status with the attempt raised: these pods are to go, and so many failures count towards backoffLimit.

    In scope Job all of the gang goes and comes again, with what of it was done: a worker that failed after the others
    had ended could not run without them.
    """
    raised = msgspec.structs.replace(
        job.status,
        restarts=job.status.restarts + 1,
        restarts_count_towards_max=job.status.restarts_count_towards_max + failures,
    )
    if restart_scope(job) == "Job":
        return msgspec.structs.replace(raised, completed_indexes={}, result="")
    going = {pod.uid for pod in (*pods, *outgoing(job, observed))}
    return msgspec.structs.replace(raised, restarting_pods=tuple(sorted(going)))
