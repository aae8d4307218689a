"""A job's pods as the server has them, for when the cache of pods lags behind the job.

Each cache has its own watch: a leader that has just begun can know a job's newest status and not yet its pods. They
would seem to be gone, a sound attempt be torn down, or the next one begun beside the last.
"""

from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import MXJob
from mxnet_operator.controller.observe import Child, project_pod
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import InvalidAnswerError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.plan import Plan, PodView
from mxnet_operator.plan.actions import CreatePod

_STATES: Final = frozenset({conditions.FAILED, conditions.SUSPENDED})


def lags_behind(pods: Indexer[Child[PodView]], job: MXJob) -> bool:
    """Whether the cache of pods is older than this job: versions of all resources are of one sequence."""
    version = job.metadata.resource_version
    return version.isdecimal() and pods.resource_version < int(version)


def relies_on_absence(job: MXJob, decided: Plan) -> bool:
    """Whether a plan would be wrong if the job had pods that weren't observed."""
    if any(isinstance(action, CreatePod) and action.attempt > 0 for action in decided.actions):
        return True
    status = decided.status
    return status is not None and (status.state in _STATES or status.restarts > job.status.restarts)


async def live_pods(client: Client, job: MXJob) -> tuple[PodView, ...]:
    """Every pod of jobs with this name, by a list that no cache answers.

    Raises:
        KubeError: the server doesn't say, or not in words that can be read.
    """
    selector = f"{names.LABEL_OPERATOR_NAME}={names.OPERATOR_NAME},{names.LABEL_JOB_NAME}={job.metadata.name}"
    listed = await client.list(PODS.path(job.metadata.namespace), {"labelSelector": selector})
    try:
        found = [project_pod(msgspec.Raw(msgspec.json.encode(pod))) for pod in listed["items"]]
    except msgspec.MsgspecError as error:
        raise InvalidAnswerError(f"a pod of {job.metadata.name}: {error}") from error
    return tuple(child.view for child in found if child is not None)
