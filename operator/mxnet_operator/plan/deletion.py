"""How a pod is asked to go: a worker with the grace that its template gives it, those that serve it at once."""

from typing import Final

from mxnet_operator.api import names
from mxnet_operator.plan.actions import DeletePod
from mxnet_operator.plan.observed import PodView

SERVING_GRACE: Final = 1
"""Seconds. Schedulers and servers have nothing to save, and as PID 1 they ignore SIGTERM (`facts/failfast.md`)."""
_SERVING: Final = frozenset({names.SCHEDULER, names.SERVER, names.TUNER_TRACKER, names.TUNER_SERVER})


def delete_pod(pod: PodView) -> DeletePod:
    """The action that deletes this pod and no namesake."""
    return DeletePod(pod.name, pod.uid, SERVING_GRACE if pod.type in _SERVING else None)
