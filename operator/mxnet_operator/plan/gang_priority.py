"""Another priority class for a job whose pods tell their gang: they are replaced while none of them has a node.

A pod's class never changes, so what a pod group is replaced for elsewhere, pods are here. Once a pod has a node nothing
is taken from under the gang: a condition says when the change takes effect.
"""

from datetime import datetime

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan.actions import CreatePod
from mxnet_operator.plan.ignored_changes import followed, ignored
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.policy import Policy
from mxnet_operator.plan.replicas import Replica
from mxnet_operator.plan.restart import Teardown, counted_restart


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


def replaced_for_priority(job: MXJob, replicas: tuple[Replica, ...], policy: Policy) -> Teardown | None:
    """Return the teardown of an attempt of which no pod has a node, and some wait by another class than the job's."""
    outdated = _outdated(job, replicas, policy)
    if not outdated or _is_placed(replicas):
        return None
    return Teardown(
        outdated,
        0,
        f"mxjob {job.metadata.name} gets other pods for its schedulingPolicy.priorityClass, {_change(job, outdated)}"
        f" {counted_restart(job)}.",
        of_all=True,
    )


def with_ignored_priority(
    current: tuple[Condition, ...], job: MXJob, replicas: tuple[Replica, ...], now: datetime, policy: Policy
) -> tuple[Condition, ...]:
    """Return the conditions with PriorityClassIgnored: True while placed pods have another class than the job's."""
    outdated = _outdated(job, replicas, policy)
    if not outdated:
        return followed(current, conditions.PRIORITY_CLASS_IGNORED, now)
    message = (
        f"The schedulingPolicy.priorityClass was changed while pods of the job have nodes ({_change(job, outdated)}):"
        " it takes effect after suspend and resume: set spec.runPolicy.suspend to true, wait until the job is Suspended"
        ", and set it to false."
    )
    return ignored(current, conditions.PRIORITY_CLASS_IGNORED, message, now)


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
