"""Attempts: which pods belong to an earlier one, and how status changes when one is given up.

The status records it before any pod is deleted. So a failure counts exactly once, however often and by whichever
controller it is observed: an exit in an earlier attempt no longer counts.
"""

from typing import Literal

import msgspec

from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan.observed import Observed, PodView


def restart_scope(job: MXJob) -> Literal["Job", "Replica"]:
    """Return the default restartScope: Job where the replicas form a gang, else Replica.

    No member of a ps-lite gang can be replaced; tuning processes and a lone worker can.
    """
    if job.spec.run_policy.restart_scope is not None:
        return job.spec.run_policy.restart_scope
    specs = job.spec.specs_in_use
    if any(TYPES[replica_type].tunes for replica_type in specs):
        return "Replica"
    has_root = any(TYPES[replica_type].is_root for replica_type in specs)
    workers = sum(spec.replicas or 0 for replica_type, spec in specs.items() if TYPES[replica_type].works)
    return "Job" if has_root or workers > 1 else "Replica"


def pods_of_earlier_attempts(job: MXJob, observed: Observed) -> tuple[PodView, ...]:
    """Return the pods of earlier attempts, which are to be deleted and whose exits no longer count."""
    if restart_scope(job) == "Job":
        return tuple(pod for pod in observed.pods if pod.attempt < job.status.restarts)
    first, restarting = job.status.first_attempt, job.status.restarting_pods
    return tuple(pod for pod in observed.pods if pod.attempt < first or pod.uid in restarting)


def as_begun_anew(job: MXJob, status: MXJobStatus) -> MXJobStatus:
    """Return the status with which the next attempt begins: in scope Job with all replicas, also if some were done.

    A worker that failed after the others had ended could not run without them.
    """
    return msgspec.structs.replace(status, completed_indexes={}, result="") if restart_scope(job) == "Job" else status


def torn_down(job: MXJob, observed: Observed, pods: tuple[PodView, ...], failures: int) -> MXJobStatus:
    """Return the status with the attempt raised: these pods are given up, and `failures` count towards backoffLimit."""
    raised = msgspec.structs.replace(
        job.status,
        restarts=job.status.restarts + 1,
        restarts_count_towards_max=job.status.restarts_count_towards_max + failures,
    )
    if restart_scope(job) == "Job":
        return as_begun_anew(job, raised)
    present = {pod.uid for pod in observed.pods}
    terminating = {pod.uid for pod in pods} | (present & set(job.status.restarting_pods))
    return msgspec.structs.replace(raised, restarting_pods=tuple(sorted(terminating)))


def given_up(job: MXJob) -> MXJobStatus:
    """Return the status with the attempt raised where all pods of a job are given up, none for a failure.

    The number of the attempt says so of any number of pods, and of pods that nobody has observed yet.
    """
    restarts = job.status.restarts + 1
    status = msgspec.structs.replace(job.status, restarts=restarts, first_attempt=restarts, restarting_pods=())
    return as_begun_anew(job, status)
