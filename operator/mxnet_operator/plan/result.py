"""Result of a job: the last lines that its script writes to the termination message."""

from collections.abc import Iterable

from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MAX_RESULT
from mxnet_operator.plan.replicas import Outcome, Replica


def result_of(replicas: Iterable[Replica]) -> str:
    """Return the termination message of Worker 0, or of the Tuner, once it is done; empty before, or where it has none.

    In the status it outlives the pod, and a workflow step that reads one object has it too.
    """
    for replica in replicas:
        if TYPES[replica.type].reports_result and replica.index == 0 and replica.outcome is Outcome.DONE:
            return replica.pod.message[:MAX_RESULT] if replica.pod is not None else ""
    return ""
