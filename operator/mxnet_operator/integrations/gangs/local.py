"""The local cluster's scheduler, which goes by annotations of the pods: it has no pod groups.

A scheduler sees pods as they come, one by one. What it can't see is how many are still to come: so each carries the
size of its gang. `docs/decisions/local-scheduler.md`.

A pod's priority class never changes, so pods that wait by another class than the job's are replaced while none of them
has a node. Once a pod has a node nothing is taken from under the gang: a condition says when the change takes effect.
"""

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import AnnotatePod, Effects, Reads
from mxnet_operator.plan.failures import Teardown, counted_restart
from mxnet_operator.plan.fewer_workers import placed_at_once
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Replica, parse_indexes, replicas_in, restart_scope
from mxnet_operator.plan.state import JobState


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


def gang_priority(job: MXJob, replica_type: str) -> str:
    """Return the priority class that schedulingPolicy gives to the pods of a type; none where the template has one."""
    policy = job.spec.run_policy.scheduling_policy
    template = job.spec.mx_replica_specs[replica_type].template
    named = template["spec"].get("priorityClassName")
    return "" if named or policy is None else policy.priority_class or ""


def another_priority(state: JobState) -> Teardown | Reads | Effects:
    """Give a job other pods where some wait by another class than the job's and none has a node; else say when.

    PriorityClassIgnored is True while placed pods have another priority class than the job's.
    """
    job, replicas = state.job, state.replicas
    outdated = _outdated(job, replicas)
    if not outdated:
        words = "The job runs as specified."
        return state.no_longer(conditions.PRIORITY_CLASS_IGNORED, conditions.REASON_SPEC_IN_SYNC, words)
    if not _is_placed(replicas):
        if not state.observed.pods_listed:
            return Reads(pods="labelled")
        message = (
            f"mxjob {job.metadata.name} gets other pods for its schedulingPolicy.priorityClass,"
            f" {_change(job, outdated)} {counted_restart(job)}."
        )
        return Teardown(outdated, 0, message, of_all=True)
    message = (
        f"The schedulingPolicy.priorityClass was changed while pods of the job have nodes ({_change(job, outdated)}):"
        " it takes effect after suspend and resume: set spec.runPolicy.suspend to true, wait until the job is Suspended"
        ", and set it to false."
    )
    reason = conditions.REASON_NOT_SUSPENDED
    return state.warn(conditions.PRIORITY_CLASS_IGNORED, reason, message, again="if changed")


def _outdated(job: MXJob, replicas: tuple[Replica, ...]) -> tuple[Replica, ...]:
    return tuple(
        replica
        for replica in replicas
        if replica.pod is not None
        and not replica.pod.deleting
        and replica.pod.gang_priority != gang_priority(job, replica.type)
    )


def _is_placed(replicas: tuple[Replica, ...]) -> bool:
    return any(replica.pod is not None and replica.pod.is_placed for replica in replicas)


def _change(job: MXJob, outdated: tuple[Replica, ...]) -> str:
    first = outdated[0]
    before = first.pod.gang_priority if first.pod is not None else ""
    return f"from {before or 'none'} to {gang_priority(job, first.type) or 'none'}"
