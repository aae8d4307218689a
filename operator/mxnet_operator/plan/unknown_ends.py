"""Condition ExitCodeUnknown: pods that ended without a container status (virtual kubelets); their phase decides."""

from datetime import datetime

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition
from mxnet_operator.plan.replicas import Replica, labels
from mxnet_operator.readers.pods import ENDED


def with_unknown_ends(
    current: tuple[Condition, ...], replicas: tuple[Replica, ...], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with ExitCodeUnknown: True while there are such pods.

    A pod with a reason of its own (Evicted, OutOfcpu) or one that was taken away needs no exit code.
    """
    unknown = tuple(replica for replica in replicas if _is_unknown(replica))
    if not unknown:
        return conditions.set_false(
            current, conditions.EXIT_CODE_UNKNOWN, conditions.EXIT_CODE_UNKNOWN, "Every exit code is known.", now
        )
    phases = " or ".join(sorted({replica.pod.phase for replica in unknown if replica.pod is not None}))
    message = (
        f"The exit code of {labels(unknown)} is unknown, since its pod has phase {phases} and no status of the"
        " container mxnet: the phase decides."
    )
    return conditions.set_condition(
        current, conditions.EXIT_CODE_UNKNOWN, conditions.REASON_NO_CONTAINER_STATUS, message, now
    )


def _is_unknown(replica: Replica) -> bool:
    pod = replica.pod
    if pod is None or pod.exit_code is not None or pod.phase not in ENDED:
        return False
    return not (pod.pod_reason or pod.was_removed)
