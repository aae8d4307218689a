"""Uncached reads of a job's pods, for when the cache of pods lags behind the job.

Each cache has its own watch: a leader that has just begun can know a job's newest status and not yet its pods. They
would seem to be gone, a sound attempt be torn down, or the next one begun beside the last.
"""

import asyncio
from typing import Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob, ObjectMeta
from mxnet_operator.controller.projection import project_pod
from mxnet_operator.integrations.child_kinds import Child
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import ApiError, Client
from mxnet_operator.kube.errors import InvalidAnswerError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.plan import PodView
from mxnet_operator.readers.pods import ENDED, Wire

IN_FLIGHT: Final = 32
"""Maximum pods of one job that are read at once."""


class _Owner(Wire, frozen=True):
    uid: str = ""
    controller: bool = False


class _OwnedMetadata(Wire, frozen=True):
    owner_references: list[_Owner] | None = None


class _Phase(Wire, frozen=True):
    phase: str = ""


class _OwnedPod(Wire, frozen=True):
    metadata: _OwnedMetadata
    status: _Phase = _Phase()


def lags_behind(pods: Indexer[Child[PodView]], job: MXJob) -> bool:
    """Return whether the cache of pods is older than this job: versions of all resources are of one sequence."""
    version = job.metadata.resource_version
    return version.isdecimal() and pods.resource_version < int(version)


async def unwatched_pods(client: Client, job: MXJob, pods: tuple[PodView, ...]) -> tuple[PodView, ...]:
    """Return pods of a job with defaults, as it was started, that exist though they are not among `pods`.

    A watch by labels misses a pod that has lost its label, or never had it since an older operator made it, and so does
    a list: they are read by their names.
    """
    known = {pod.name for pod in pods}
    expected = (
        names.replica_name(job.metadata.name, replica_type, index)
        for replica_type, spec in job.spec.mx_replica_specs.items()
        for index in range(spec.replicas or 0)
    )
    gate = asyncio.Semaphore(IN_FLIGHT)

    async def find(name: str) -> PodView | None:
        async with gate:
            try:
                found = await client.get(PODS.path(job.metadata.namespace, name))
            except ApiError as error:
                if error.code == 404:
                    return None
                raise
        child = project_pod(msgspec.Raw(msgspec.json.encode(found)))
        return child.view if child is not None and child.view.owner_uid == job.metadata.uid else None

    found = await asyncio.gather(*(find(name) for name in expected if name not in known))
    return tuple(pod for pod in found if pod is not None)


async def with_unwatched_pods(
    client: Client, job: MXJob, pods: tuple[PodView, ...], *, are_listed: bool
) -> tuple[PodView, ...]:
    """Return the pods of a job and what `unwatched_pods` finds beside them.

    Where it finds some, the others are listed too, unless they have been: a pod as it is now must not be judged beside
    others as they were, which a cache may say.
    """
    unwatched = await unwatched_pods(client, job, pods)
    if unwatched and not are_listed:
        pods = await list_pods(client, job)
        unwatched = await unwatched_pods(client, job, pods)
    return (*pods, *unwatched)


async def list_pods(client: Client, job: MXJob) -> tuple[PodView, ...]:
    """Return every pod of jobs with this name, by a list that bypasses the caches.

    Raises:
        KubeError: the server doesn't answer, or sends what can't be decoded.
    """
    selector = f"{names.LABEL_OPERATOR_NAME}={names.OPERATOR_NAME},{names.LABEL_JOB_NAME}={job.metadata.name}"
    listed = await client.list(PODS.path(job.metadata.namespace), {"labelSelector": selector})
    try:
        found = [project_pod(msgspec.Raw(msgspec.json.encode(pod))) for pod in listed["items"]]
    except msgspec.MsgspecError as error:
        raise InvalidAnswerError(f"a pod of {job.metadata.name}: {error}") from error
    return tuple(child.view for child in found if child is not None)


async def has_running_pods(client: Client, job: ObjectMeta) -> bool:
    """Return whether a pod that the job controls has not ended, by a list of all pods of the namespace.

    Of an invalid job neither the names of its pods nor their labels are known.

    Raises:
        KubeError: the server doesn't answer, or sends what can't be decoded.
    """
    listed = await client.list(PODS.path(job.namespace))
    try:
        pods = msgspec.convert(listed["items"], list[_OwnedPod])
    except msgspec.MsgspecError as error:
        raise InvalidAnswerError(f"a pod of namespace {job.namespace}: {error}") from error
    return any(
        pod.status.phase not in ENDED
        for pod in pods
        if any(owner.controller and owner.uid == job.uid for owner in pod.metadata.owner_references or ())
    )
