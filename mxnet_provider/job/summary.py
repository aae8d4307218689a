"""Summary of a job that its task returns, and its description in messages."""

from collections.abc import Iterable, Mapping
from typing import Any

from mxnet_operator.api.storable import json_or_text
from mxnet_operator.client.job_status import status_of
from mxnet_operator.readers.long_result import reference
from mxnet_operator.readers.volumes import kept_volumes
from mxnet_provider.job import replicas


def summary(
    job: Mapping[str, Any], pods: Iterable[replicas.Pod], *, result_of: str | None = replicas.RESULT_OF
) -> dict[str, Any]:
    """Return what a task returns about its job: small, and JSON.

    The result is the one that the controller has kept in the job's status. A controller from before it did so left it
    in the pods only, as does a job that failed: there it is the message of the replica that `result_of` names. None for
    no result.
    """
    pods, read, status = list(pods), status_of(job), job.get("status") or {}
    of_status = ("name", "namespace", "uid", "state", "started_at", "completed_at", "duration_s", "message")
    return {
        **{each: getattr(read, each) for each in of_status},
        "restarts": status.get("restarts") or 0,
        "replicas": replicas.summary(pods),
        "result": _result(status.get("result"), pods, result_of),
        "training": status.get("training"),
        "files": [*map(str, kept_volumes(job)), *_local_files(job, pods)],
    }


def counts(job: Mapping[str, Any]) -> str:
    """Format the number of active replicas of each type, in brackets; empty where none is."""
    statuses = (job.get("status") or {}).get("replicaStatuses") or {}
    active = [f"{replica_type} {status['active']}" for replica_type, status in statuses.items() if status.get("active")]
    return f" ({', '.join(active)} active)" if active else ""


def _local_files(job: Mapping[str, Any], pods: Iterable[replicas.Pod]) -> list[str]:
    if not replicas.are_local(pods):
        return []
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    return [f"working directories on the local cluster, until the job is deleted: mxjob describe -n {namespace} {name}"]


def _result(kept: str | None, pods: Iterable[replicas.Pod], result_of: str | None) -> Any:
    if result_of is None:
        return None
    text = kept or replicas.result_text(pods, result_of)
    return json_or_text(text) if text and not reference(text) else None
