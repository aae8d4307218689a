"""Rules of deletion: which objects the controller may end, and with which grace period."""

from typing import Final

from mxnet_operator.api import conditions, names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import DeletePod
from mxnet_operator.plan.observed import PodView

SERVING_GRACE: Final = 1
"""Grace period in seconds. Schedulers and servers save nothing, and as PID 1 ignore SIGTERM (`docs/facts/mxnet.md`)."""


def delete_pod(pod: PodView) -> DeletePod:
    """Return the action that deletes this pod, and no other of its name."""
    return DeletePod(pod.name, pod.uid, SERVING_GRACE if TYPES[pod.type].serves else None)


def can_end(job: MXJob) -> bool:
    """Return whether the job is unfinished and the controller may end it.

    It may only end kubeflow.org's MXJobs: it has no right to delete those of older kinds.
    """
    is_ours = (job.api_version, job.kind) == (names.API_VERSION, names.KIND)
    return is_ours and job.metadata.deletion_timestamp is None and not conditions.is_terminal(job.status)
