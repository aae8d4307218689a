"""Jobs as an API server stores them, of every kind that it serves."""

import asyncio
from typing import TYPE_CHECKING, Any

from mxnet_operator.api.kinds import ALL, MXJOB, Kind
from mxnet_operator.client.resources import resource_of
from mxnet_operator.kube.answers import Stored
from mxnet_operator.kube.errors import ApiError

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client


async def stored_jobs(client: "Client", namespace: str | None, params: dict[str, str]) -> list[dict[str, Any]]:
    """List the jobs of every kind as stored, sorted by namespace and name.

    Raises:
        ApiError: those of kubeflow.org can't be listed; other kinds may be absent or forbidden.
    """
    found = await asyncio.gather(*(_list(client, kind, namespace, params) for kind in ALL))
    jobs = [job for of_kind in found for job in of_kind]
    return sorted(jobs, key=lambda job: (job["metadata"]["namespace"], job["metadata"]["name"]))


async def _list(client: "Client", kind: Kind, namespace: str | None, params: dict[str, str]) -> list[dict[str, Any]]:
    try:
        listed = await client.list(resource_of(kind).path(namespace), params)
    except ApiError as error:
        if kind is MXJOB or error.code not in {403, 404}:
            raise
        return []
    return [{"apiVersion": kind.api_version, "kind": kind.kind, **job} for job in listed["items"]]


async def stored_job(client: "Client", kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
    """Read the job of a kind that has this name, as stored; None where there is none."""
    try:
        found = await client.get(resource_of(kind).path(namespace, name), shape=Stored)
    except ApiError as error:
        if error.code == 404 or (error.code == 403 and kind is not MXJOB):
            return None
        raise
    return {"apiVersion": kind.api_version, "kind": kind.kind, **found}
