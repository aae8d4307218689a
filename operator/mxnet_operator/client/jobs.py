"""Jobs on a server: in v1's words whatever their kind, how they change, and how they are deleted."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mxnet_operator.api import job_formats, names
from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.api.formats.mxjob import V1
from mxnet_operator.api.kinds import Kind, kind_of
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.client.outage import Outage, Retries
from mxnet_operator.client.resources import resource_of
from mxnet_operator.kube.answers import SILENCE_SECONDS, Event, Stored, decoded, document
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.kube.resources import Resource
from mxnet_operator.readers.pods import is_owned_by

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

_PASSING: Final = frozenset({404, 410})
"""Codes that a list may be answered with in an outage, and not after it."""


class DeletedError(Exception):
    """The object that was watched is gone."""


async def collections(
    client: "Client", path: str, params: dict[str, str] | None = None, *, outage: Outage | None = None
) -> AsyncGenerator[dict[str, dict[str, Any]]]:
    """Yield the objects of a list by uid, as they are and as they become; some versions may be left out.

    Goes on through an outage that its tolerance allows. Ends with nothing but an exception.

    Raises:
        ApiUnavailable, ApiError: the server was away for too long, or it rejects the request.
    """
    outage = outage or Outage()
    retries = Retries(outage)
    while True:
        try:
            listed = await client.list(path, params)
        except (ApiUnavailable, ApiError) as error:
            # A server that starts may serve its custom resources late.
            await retries.pause_or_raise(error, also=_PASSING if outage.failures else {410})
            continue
        retries.answered()
        found = {item["metadata"]["uid"]: item for item in listed["items"]}
        yield dict(found)
        since = {"resourceVersion": listed["metadata"]["resourceVersion"], "timeoutSeconds": "300"}
        query = {**(params or {}), **since, "allowWatchBookmarks": "true"}
        try:
            async with contextlib.aclosing(client.watch(path, query, idle_timeout=SILENCE_SECONDS)) as lines:
                async for line in lines:
                    event = decoded(line, Event)
                    if event.type == "ERROR":
                        break
                    outage.heard()
                    if event.type == "BOOKMARK":
                        continue
                    changed = document(bytes(event.object), Stored)
                    uid = changed["metadata"]["uid"]
                    if event.type == "DELETED":
                        found.pop(uid, None)
                    else:
                        found[uid] = changed
                    yield dict(found)
        except (ApiUnavailable, ApiError) as error:
            if isinstance(error, ApiError) and not error.is_transient and error.code != 410:
                raise
        outage.disconnected()
        await retries.pause()


def kind_of_job(job: dict[str, Any]) -> Kind:
    """Return the kind of a job that a server returned, or of a manifest that is valid.

    Raises:
        ValueError: it is neither.
    """
    kind = kind_of(job["apiVersion"], job["kind"])
    if kind is None:
        raise ValueError(f"{job['kind']} in {job['apiVersion']} is no kind of job")
    return kind


def resource_of_job(job: dict[str, Any]) -> Resource:
    return resource_of(kind_of_job(job))


def in_v1_words(job: dict[str, Any]) -> dict[str, Any]:
    """Return a job with the spec and the status that it means in v1; apiVersion and kind stay its own."""
    job_format = job_formats.format_of(job)
    if job_format is V1:
        return job
    spec = {"jobMode": "", "mxReplicaSpecs": {}} if job_formats.errors(job) else job_formats.to_v1(job)["spec"]
    return {
        **job,
        "spec": spec,
        "status": msgspec.to_builtins(job_formats.status_from_wire(job_format, job.get("status") or {})),
    }


def pods_of(job: dict[str, Any], pods: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pods that belong to this job, not to an earlier one of its name."""
    uid = job["metadata"]["uid"]
    return [pod for pod in pods if is_owned_by(pod, uid)]


def pod_selector(job: dict[str, Any]) -> dict[str, str]:
    return {"labelSelector": f"{names.LABEL_JOB_NAME}={job['metadata']['name']}"}


async def job_versions(
    client: "Client", job: dict[str, Any], *, outage: Outage | None = None
) -> AsyncGenerator[dict[str, Any]]:
    """Yield a job as it is and as it becomes, newest last; some versions may be left out.

    Raises:
        DeletedError: it isn't there, now or any more; a later one of its name may be.
        ApiUnavailable: the server was away for too long.
    """
    metadata = job["metadata"]
    path, named = (
        resource_of_job(job).path(metadata["namespace"]),
        {"fieldSelector": f"metadata.name={metadata['name']}"},
    )
    async with contextlib.aclosing(collections(client, path, named, outage=outage)) as changes:
        async for found in changes:
            if (current := found.get(metadata["uid"])) is None:
                raise DeletedError(metadata["name"])
            yield in_v1_words({"apiVersion": job["apiVersion"], "kind": job["kind"], **current})


async def until_finished(
    client: "Client",
    job: dict[str, Any],
    *,
    outage: Outage | None = None,
    on_change: Callable[[dict[str, Any]], object] = lambda _: None,
) -> dict[str, Any]:
    """Wait until a job has succeeded or failed, and return it; `on_change` is called with each of its versions.

    Raises:
        DeletedError, ApiUnavailable: as `job_versions`.
    """
    async with contextlib.aclosing(job_versions(client, job, outage=outage)) as changes:
        async for current in changes:
            on_change(current)
            if job_state(current) in TERMINAL:
                return current
    raise AssertionError("the versions of a job end with nothing but an exception")


async def until_gone(client: "Client", job: dict[str, Any]) -> None:
    """Wait until this job, not a later one of its name, is gone."""
    with contextlib.suppress(DeletedError):
        async with contextlib.aclosing(job_versions(client, job)) as changes:
            async for _ in changes:
                pass


def pod_name(job: str, replica: str) -> str:
    """Return the pod's name of a replica such as `worker-0`, however it is spelled."""
    return f"{job}-{replica.lower()}"


def main_replica(job: dict[str, Any]) -> str:
    """Return the replica whose log says most: worker 0, or the tuner where there are no workers."""
    types = {names.canonical_type(key): spec for key, spec in job["spec"]["mxReplicaSpecs"].items()}
    for replica_type in (each.name for each in TYPES.values() if each.reports_result):
        if types.get(replica_type, {"replicas": 0}).get("replicas", 1):
            return f"{replica_type.lower()}-0"
    return next((f"{replica_type.lower()}-0" for replica_type in types if replica_type), "worker-0")


def pod_spec(job: dict[str, Any], replica: str) -> dict[str, Any]:
    """Return the spec in the template of a replica such as `worker-0`; `{}` where the job has none of its type."""
    kind = names.canonical_type(replica.rpartition("-")[0])
    for key, spec in job["spec"]["mxReplicaSpecs"].items():
        if names.canonical_type(key) == kind:
            return dict(spec["template"]["spec"])
    return {}


def images_of(job: dict[str, Any]) -> set[str]:
    specs = (spec["template"]["spec"] for spec in job["spec"]["mxReplicaSpecs"].values())
    return {names.main_container(spec.get("containers")).get("image", "") for spec in specs}


def replicas(job: dict[str, Any]) -> list[str]:
    """Every replica of a job, as `worker-0`, in the order in which they are made."""
    types = _counts(job)
    return [f"{kind.lower()}-{index}" for kind in names.REPLICA_TYPES for index in range(types.get(kind, 0))]


def ready_counts(job: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Count for each replica type the replicas that run or have succeeded, and those wanted, in order of creation."""
    statuses = (job.get("status") or {}).get("replicaStatuses") or {}
    here = {
        names.canonical_type(key): status.get("active", 0) + status.get("succeeded", 0)
        for key, status in statuses.items()
    }
    asked = _counts(job)
    return {kind: (here.get(kind, 0), asked[kind]) for kind in names.REPLICA_TYPES if asked.get(kind)}


def _counts(job: dict[str, Any]) -> dict[str | None, int]:
    """Return the number of replicas of each type, in an attempt with fewer those of the attempt."""
    specs = job["spec"]["mxReplicaSpecs"].items()
    asked = {names.canonical_type(key): spec.get("replicas", 1) for key, spec in specs}
    return {**asked, **((job.get("status") or {}).get("fewerReplicas") or {})}
