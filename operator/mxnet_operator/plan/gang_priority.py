"""Another priority class for a job whose pods tell their gang: they are replaced while none of them has a node.

A pod's class never changes, so what a pod group is replaced for elsewhere, pods are here. Once a pod has a node nothing
is taken from under the gang: a condition says when the change takes effect.
"""

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import CreatePod, Effects, Reads
from mxnet_operator.plan.failures import Teardown, counted_restart
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Replica
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.times import Policy


def gang_priority(job: MXJob, replica_type: str) -> str:
    """Return the priority class that schedulingPolicy gives to the pods of a type; none where the template has one."""
    policy = job.spec.run_policy.scheduling_policy
    template = job.spec.mx_replica_specs[replica_type].template
    named = template["spec"].get("priorityClassName")
    return "" if named or policy is None else policy.priority_class or ""


def with_priority_class(job: MXJob, creations: tuple[CreatePod, ...], policy: Policy) -> tuple[CreatePod, ...]:
    """Return the pods to create with the priority class of their gang, which no pod group carries here."""
    if not policy.pods_tell_their_gang:
        return creations
    return tuple(msgspec.structs.replace(each, priority_class=gang_priority(job, each.type)) for each in creations)


def another_priority(state: JobState) -> Teardown | Reads | Effects:
    """Give a job other pods where some wait by another class than the job's and none has a node; else say when.

    PriorityClassIgnored is True while placed pods have another priority class than the job's.
    """
    job, replicas = state.job, state.replicas
    outdated = _outdated(job, replicas, state.policy)
    if not outdated:
        words = "The job runs as specified."
        return state.no_longer(conditions.PRIORITY_CLASS_IGNORED, conditions.REASON_AS_STARTED, words)
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


def _outdated(job: MXJob, replicas: tuple[Replica, ...], policy: Policy) -> tuple[Replica, ...]:
    if not policy.pods_tell_their_gang:
        return ()
    return tuple(
        replica
        for replica in replicas
        if replica.pod is not None
        and not replica.pod.deleting
        and _differs(replica.pod, gang_priority(job, replica.type))
    )


def _differs(pod: PodView, wanted: str) -> bool:
    """Return whether a pod has another class from its gang than is wanted.

    Pods of earlier versions don't say that theirs is from their gang; without one they may have the server's default.
    """
    return _class_of(pod) != wanted if wanted else bool(pod.gang_priority)


def _class_of(pod: PodView) -> str:
    return pod.gang_priority or pod.priority_class


def _is_placed(replicas: tuple[Replica, ...]) -> bool:
    return any(replica.pod is not None and replica.pod.is_placed for replica in replicas)


def _change(job: MXJob, outdated: tuple[Replica, ...]) -> str:
    first = outdated[0]
    before = _class_of(first.pod) if first.pod is not None else ""
    return f"from {before or 'none'} to {gang_priority(job, first.type) or 'none'}"
