"""The local cluster's scheduler, which goes by annotations of the pods: it has no pod groups.

A scheduler sees pods as they come, one by one. What it can't see is how many are still to come: so each carries the
size of its gang. `docs/decisions/gangs.md`.
"""

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import AnnotatePod
from mxnet_operator.plan.fewer_workers import placed_at_once
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import parse_indexes, replicas_in, restart_scope


def gang_member(job: MXJob, attempt: int) -> str:
    """Return `names.GANG_MEMBER_ANNOTATION` for a pod of a job with defaults: `attempt-0/9/2026-11-22T13:44:00Z`.

    In scope Job the gang is the attempt. In scope Replica, where a replica that is retried has an attempt of its own,
    it is all of the job that is not done yet. A job with `minAvailable` has that number at the end (`.../3`).
    """
    members = size = replicas_in(job)
    name = f"attempt-{attempt}"
    if restart_scope(job) == "Replica":
        size = max(1, size - sum(len(parse_indexes(indexes)) for indexes in job.status.completed_indexes.values()))
        name = "job"
    created = job.metadata.creation_timestamp
    said = f"{name}/{max(1, size)}/{created.strftime('%Y-%m-%dT%H:%M:%SZ') if created else ''}"
    minimum = placed_at_once(job)
    if minimum == members:
        return said
    return f"{said}/{minimum if minimum > members else min(minimum, size)}"


def outdated_members(job: MXJob, pods: tuple[PodView, ...]) -> tuple[AnnotatePod, ...]:
    """Return the changes of pods that wait by other numbers than the job with defaults has by now."""
    waiting = (pod for pod in pods if pod.gang_member and not pod.deleting)
    wanted = ((pod, gang_member(job, pod.attempt)) for pod in waiting)
    return tuple(
        AnnotatePod(pod.name, pod.uid, names.GANG_MEMBER_ANNOTATION, said)
        for pod, said in wanted
        if said != pod.gang_member
    )
