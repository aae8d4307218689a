"""MXJobs on a server, as the commands see them: where they live, and one job as it changes."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.kube.resources import PODS, Resource

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client

JOBS: Final = Resource(names.GROUP, names.VERSION, names.PLURAL)

_PATIENCE: Final = 60.0
"""Seconds for which a server that can't be reached is asked again before a command gives up."""


class DeletedError(Exception):
    """The object that was watched is gone."""


async def versions(client: "Client", resource: Resource, namespace: str, name: str) -> AsyncGenerator[dict[str, Any]]:
    """An object as it is and as it becomes, newest last; some versions may be left out.

    Goes on through short absences of the server. Ends with nothing but an exception. Another object of the name, if
    one comes between two looks, is told by its uid.

    Raises:
        DeletedError: the object isn't there, now or any more.
        ApiUnavailable: the server stayed away for a minute.
    """
    from mxnet_operator.kube.client import ApiError, ApiUnavailable  # noqa: PLC0415

    path = resource.path(namespace)
    selector = {"fieldSelector": f"metadata.name={name}"}
    loop = asyncio.get_running_loop()
    reached = loop.time()
    pause = 0.5
    while True:
        try:
            listed = await client.list(path, selector)
            reached, pause = loop.time(), 0.5
            if not listed["items"]:
                raise DeletedError(name)
            yield listed["items"][0]
            since = {"resourceVersion": listed["metadata"]["resourceVersion"], "timeoutSeconds": "300"}
            async with contextlib.aclosing(client.watch(path, {**selector, **since}, idle_timeout=330)) as lines:
                async for line in lines:
                    event = msgspec.json.decode(line, type=dict[str, Any])
                    if event["type"] == "DELETED":
                        raise DeletedError(name)
                    if event["type"] == "ERROR":
                        break
                    yield event["object"]
        except (ApiUnavailable, ApiError) as error:
            if isinstance(error, ApiError) and not error.is_transient and error.code != 410:
                raise
            if loop.time() - reached > _PATIENCE:
                raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, 8.0)


async def until_gone(client: "Client", namespace: str, name: str, uid: str) -> None:
    """Wait until this job, not a later one of its name, is gone."""
    with contextlib.suppress(DeletedError):
        async with contextlib.aclosing(versions(client, JOBS, namespace, name)) as changes:
            async for job in changes:
                if job["metadata"]["uid"] != uid:
                    return


def pod_name(job: str, replica: str) -> str:
    """The pod of a replica such as `worker-0`, however it is spelled."""
    return f"{job}-{replica.lower()}"


def main_replica(job: dict[str, Any]) -> str:
    """The replica whose log tells most: worker 0, or the tuner where there are no workers."""
    types = {names.canonical_type(key): spec for key, spec in job["spec"]["mxReplicaSpecs"].items()}
    for replica_type in (names.WORKER, names.TUNER):
        if types.get(replica_type, {"replicas": 0}).get("replicas", 1):
            return f"{replica_type.lower()}-0"
    return next((f"{replica_type.lower()}-0" for replica_type in types if replica_type), "worker-0")


def replicas(job: dict[str, Any]) -> list[str]:
    """Every replica of a job, as `worker-0`, in the order in which they are made."""
    types = {names.canonical_type(key): spec.get("replicas", 1) for key, spec in job["spec"]["mxReplicaSpecs"].items()}
    return [f"{kind.lower()}-{index}" for kind in names.REPLICA_TYPES for index in range(types.get(kind, 0))]


__all__ = ["JOBS", "PODS", "DeletedError", "main_replica", "pod_name", "replicas", "until_gone", "versions"]
