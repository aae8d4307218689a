"""Pod topology: which pods a running job must have, and which of them are missing."""

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import CreatePod
from mxnet_operator.plan.attempt import restart_scope
from mxnet_operator.plan.joining import last_created
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Outcome, Replica


def missing_pods(job: MXJob, replicas: tuple[Replica, ...], terminating: tuple[PodView, ...]) -> tuple[CreatePod, ...]:
    """Return the pods to create, the last-created one at the end; none in place of one that is terminating.

    None at all while pods of the gang's previous attempt exist.
    """
    if terminating and restart_scope(job) == "Job":
        return ()
    last = last_created(job)
    taken = {(pod.type, pod.index) for pod in terminating}
    missing = [
        (replica.type, replica.index)
        for replica in replicas
        if replica.outcome is Outcome.MISSING and (replica.type, replica.index) not in taken
    ]
    ordered = (*(each for each in missing if each != last), *(each for each in missing if each == last))
    return tuple(CreatePod(*each, job.status.restarts, is_last=each == last) for each in ordered)
