"""Reads that bypass the caches, as a plan asks for them: of pods, of nodes, and of the job's newest version.

Each cache has its own watch: a leader that has just begun can know a job's newest status and not yet its pods. They
would seem to be gone, a sound attempt be torn down, or the next one begun beside the last. Nodes of pods that don't
terminate are few, so there is no watch and no cache of nodes.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob, ObjectMeta
from mxnet_operator.controller.projection import project_pod
from mxnet_operator.integrations.child_kinds import Child
from mxnet_operator.kube.answers import Metadata, Shape, Stored
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, InvalidAnswerError
from mxnet_operator.kube.resources import NODES, PODS, Resource
from mxnet_operator.plan import NodeView, Observed, PodView, Reads
from mxnet_operator.readers.pods import Condition


class _Taint(Shape, frozen=True):
    key: str = ""


class _Spec(Shape, frozen=True):
    taints: list[_Taint] | None = None


class _Status(Shape, frozen=True):
    conditions: list[Condition] | None = None


class _Node(Shape, frozen=True):
    metadata: Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


async def observe_more(client: Client, resource: Resource, job: MXJob, observed: Observed, reads: Reads) -> Observed:
    """Return an observation of a job with what a plan asked for; `resource` is the job's.

    Raises:
        KubeError: the server doesn't answer, or sends what can't be decoded.
    """
    if reads.pods:
        watched = f"{names.LABEL_OPERATOR_NAME}={names.OPERATOR_NAME},{names.LABEL_JOB_NAME}={job.metadata.name}"
        listed = await owned_pods(client, job.metadata, "" if reads.pods == "owned" else watched)
        observed = msgspec.structs.replace(observed, pods=listed, pods_listed=reads.pods)
    if reads.nodes:
        observed = msgspec.structs.replace(observed, nodes=await node_views(client, reads.nodes))
    if reads.newest_job:
        stored = await client.find(resource.path(job.metadata.namespace, job.metadata.name), shape=Stored)
        is_newest = stored is not None and stored["metadata"]["resourceVersion"] == job.metadata.resource_version
        observed = msgspec.structs.replace(observed, job_is_newest=is_newest)
    return observed


def lags_behind(pods: Indexer[Child[PodView]], job: MXJob) -> bool:
    """Return whether the cache of pods is older than this job: versions of all resources are of one sequence."""
    version = job.metadata.resource_version
    return version.isdecimal() and pods.resource_version < int(version)


async def owned_pods(client: Client, job: ObjectMeta, selector: str = "") -> tuple[PodView, ...]:
    """Return all pods that a job controls, by a list of those of its namespace that have the labels of a selector.

    Pods that operators before training-operator 1.8 made have no labels of ours.

    Raises:
        KubeError: the server doesn't answer, or sends what can't be decoded.
    """
    listed = await client.list(PODS.path(job.namespace), {"labelSelector": selector} if selector else {})
    try:
        found = [project_pod(msgspec.Raw(msgspec.json.encode(pod))) for pod in listed["items"]]
    except msgspec.MsgspecError as error:
        raise InvalidAnswerError(f"a pod of namespace {job.namespace}: {error}") from error
    return tuple(child.view for child in found if child is not None and child.view.owner_uid == job.uid)


async def node_views(client: Client, names: Iterable[str]) -> tuple[NodeView, ...]:
    """Return the present state of these nodes.

    Raises:
        KubeError: it can't be read; a rejection for lack of rights, as a namespaced controller gets it, is a state
            (`Forbidden`).
    """
    return tuple(await asyncio.gather(*(_view(client, name) for name in names)))


async def _view(client: Client, name: str) -> NodeView:
    try:
        node = await client.get_as(NODES.path(name=name), _Node)
    except ApiError as error:
        if error.code == 404:
            return NodeView(name=name, state="Gone")
        if error.code == 403:
            return NodeView(name=name, state="Forbidden")
        raise
    return NodeView(name=name, state="OutOfService" if _is_out_of_service(node) else "Present")


def _is_out_of_service(node: _Node) -> bool:
    tainted = any(taint.key == NodeView.OUT_OF_SERVICE for taint in node.spec.taints or ())
    ready = any((each.type, each.status) == ("Ready", "True") for each in node.status.conditions or ())
    return tainted and not ready
