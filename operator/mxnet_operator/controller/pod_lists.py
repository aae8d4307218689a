"""Lists of a job's pods that bypass the cache, for plans that would be wrong if it lagged behind the job.

Each cache has its own watch: a leader that has just begun can know a job's newest status and not yet its pods. They
would seem to be gone, a sound attempt be torn down, or the next one begun beside the last.
"""

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob, ObjectMeta
from mxnet_operator.controller.projection import Child, project_pod
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import InvalidAnswerError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.plan import PodView


def lags_behind(pods: Indexer[Child[PodView]], job: MXJob) -> bool:
    """Return whether the cache of pods is older than this job: versions of all resources are of one sequence."""
    version = job.metadata.resource_version
    return version.isdecimal() and pods.resource_version < int(version)


async def labelled_pods(client: Client, job: ObjectMeta) -> tuple[PodView, ...]:
    """Return the pods of a job that have the labels by which this controller watches.

    Raises:
        KubeError: the server doesn't answer, or sends what can't be decoded.
    """
    selector = f"{names.LABEL_OPERATOR_NAME}={names.OPERATOR_NAME},{names.LABEL_JOB_NAME}={job.name}"
    return await _listed(client, job, {"labelSelector": selector})


async def owned_pods(client: Client, job: ObjectMeta) -> tuple[PodView, ...]:
    """Return all pods that a job controls, whatever their labels, by a list of the pods of its namespace.

    Pods that operators before training-operator 1.8 made have no labels of ours.

    Raises:
        KubeError: the server doesn't answer, or sends what can't be decoded.
    """
    return await _listed(client, job, {})


async def _listed(client: Client, job: ObjectMeta, query: dict[str, str]) -> tuple[PodView, ...]:
    listed = await client.list(PODS.path(job.namespace), query)
    try:
        found = [project_pod(msgspec.Raw(msgspec.json.encode(pod))) for pod in listed["items"]]
    except msgspec.MsgspecError as error:
        raise InvalidAnswerError(f"a pod of namespace {job.namespace}: {error}") from error
    return tuple(child.view for child in found if child is not None and child.view.owner_uid == job.uid)
