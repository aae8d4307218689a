"""Late joiners: once all pods of a gang's attempt have existed, no further one is created for it.

A member that joins a running gang waits for ever, since its predecessor was counted (`docs/facts/mxnet.md`). A pod that
was created, evicted and collected while no controller ran leaves no trace of its own. So the replica that all others
connect to is created last, when the creation of all others is confirmed: while it has never existed no
member can have joined, and missing ones are created; once it exists all have existed. The next write of the status
records that, since it may be deleted as well. `docs/decisions/restarts.md`.
"""

import msgspec

from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan.attempt import restart_scope
from mxnet_operator.plan.begun import begins
from mxnet_operator.plan.observed import PodView


def last_created(job: MXJob) -> tuple[str, int] | None:
    """Return type and index of the replica of a gang whose pod is created last; None where replicas restart one by one.

    None as well for a job that another operator started, since its order of creation is unknown.
    """
    status = job.status
    if restart_scope(job) != "Job" or not (begins(status) or status.started_replicas):
        return None
    types = tuple(job.spec.specs_in_use)
    root = next((replica_type for replica_type in types if TYPES[replica_type].is_root), None)
    first = root or next(iter(types), None)
    return None if first is None else (first, 0)


def all_have_existed(job: MXJob, pods: tuple[PodView, ...]) -> bool:
    """Return whether every pod of a gang's present attempt was created once; `pods` are the existing ones."""
    last = last_created(job)
    if last is None:
        return False
    recorded = job.status.created_attempts > job.status.restarts
    return recorded or any((pod.type, pod.index) == last for pod in pods)


def with_attempt_created(job: MXJob, status: MXJobStatus) -> MXJobStatus:
    """Return the status of a job with defaults once all pods of its present attempt exist or have existed."""
    if last_created(job) is None:
        return status
    return msgspec.structs.replace(status, created_attempts=status.restarts + 1)
