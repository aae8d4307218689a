"""Run of a job, as its report and its page show it, from its API objects and its log."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.conditions import RESTARTING, reason
from mxnet_operator.api.storable import json_or_text, storable
from mxnet_operator.client import job_status
from mxnet_operator.client.job_events import event_time
from mxnet_operator.client.jobs import main_replica, pod_name, pod_spec, pods_of, replicas
from mxnet_operator.readers.long_result import reference
from mxnet_operator.readers.pods import in_order, main_state, status_of, summary_of, waiting_of
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.volumes import kept_volumes
from mxnet_operator.report import Run


def run_of(
    job: dict[str, Any],
    pods: Iterable[dict[str, Any]],
    training: TrainingLog,
    *,
    read_at: datetime | None = None,
    message: str = "",
    written: Sequence[str] = (),
    events: Iterable[dict[str, Any]] = (),
    versions: Mapping[str, str] | None = None,
) -> Run:
    """Build the run that a page describes; figures that the script reports take precedence over its log's.

    Args:
        job: The job, in the words of v1.
        pods: Pods of its namespace; those of other jobs are left out.
        training: Figures of its main replica's log.
        read_at: When an unfinished job was read.
        message: What to say of an unfinished job.
        written: What its replicas left outside of volumes, a line each.
        events: Events of the job.
        versions: Versions in its images, by image.
    """
    read, own = job_status.status_of(job), in_order(pods_of(job, pods))
    from_log, reported = training.history(), storable(_result(job, own))
    main = pod_name(read.name, main_replica(job))
    return msgspec.convert(
        {
            **msgspec.structs.asdict(read),
            "state": read.state or "new",
            "read_at": read_at,
            "message": read.message or message,
            "replicas": [_replica(pod, training.rank if pod["metadata"]["name"] == main else None) for pod in own],
            "result": from_log | reported,
            "files": [*written, *map(str, kept_volumes(job))],
            "restarts": (job.get("status") or {}).get("restarts") or 0,
            "attempts": _attempts(job, events),
            "programs": list(_programs(job, own, versions or {})),
            "slow": training.slow,
            "from_log": [name for name in from_log if name not in reported],
        },
        Run,
    )


def _attempts(job: dict[str, Any], events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Read the attempts that ended in a restart from the controller's events: their pods are gone."""
    of_restarts = reason(RESTARTING)
    return [
        {"ended_at": event_time(event).isoformat(), "message": event.get("message") or ""}
        for event in events
        if event.get("reason") == of_restarts and event["involvedObject"].get("uid") == job["metadata"]["uid"]
    ]


def _programs(
    job: dict[str, Any], pods: Iterable[dict[str, Any]], versions: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """Read what each type of replica runs, once where several run the same."""
    ran = {names.main_container((pod.get("status") or {}).get("containerStatuses")).get("image"): pod for pod in pods}
    types: dict[tuple[str, str], list[str]] = {}
    for kind in dict.fromkeys(replica.rpartition("-")[0] for replica in replicas(job)):
        main = names.main_container(pod_spec(job, f"{kind}-0").get("containers"))
        command = shlex.join([*(main.get("command") or ()), *(main.get("args") or ())])
        types.setdefault((main.get("image", ""), command), []).append(kind)
    for (image, command), kinds in types.items():
        status = names.main_container(((ran.get(image) or {}).get("status") or {}).get("containerStatuses"))
        digest = status.get("imageID") or ""
        known = versions.get(image) or (digest if digest != image else "")
        yield {"type": ", ".join(kinds), "image": image, "command": command, "versions": known}


def _replica(pod: dict[str, Any], rank: int | None) -> dict[str, Any]:
    status = status_of(pod)
    _, waiting = waiting_of(status)
    summary = summary_of(pod)
    return {**summary, "index": max(0, summary["index"]), "rank": rank, "state": waiting.reason or status.phase.lower()}


def _result(job: dict[str, Any], pods: list[dict[str, Any]]) -> dict[str, Any]:
    """Read what the main replica wrote to its termination message, where that is a JSON object."""
    text = (job.get("status") or {}).get("result") or ""
    main = pod_name(job["metadata"]["name"], main_replica(job))
    for pod in () if text else pods:
        if pod["metadata"]["name"] == main and (ended := main_state(status_of(pod)).terminated) is not None:
            text = ended.message
    result = None if reference(text) else json_or_text(text)
    return result if isinstance(result, dict) else {}
