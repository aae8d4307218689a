"""Field `status.ready`, which `kubectl get` shows: how many of a job's replicas run or are done, as "3/4".

It is no count of its own: it says what the counts in the same status say, and is written when they are.
"""

from mxnet_operator.api.types import MXJob


def ready(count: int, total: int) -> str:
    """Return the text of `status.ready`."""
    return f"{count}/{total}"


def replicas_in(job: MXJob) -> int:
    """Return how many replicas a job with defaults has."""
    return sum(spec.replicas or 0 for spec in job.spec.mx_replica_specs.values())
