"""Report on a job that a command followed to its end, from its API objects and its log."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.conditions import job_state, terminal_message
from mxnet_operator.api.storable import json_or_text, storable
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.running.run_outputs import ReportError
from mxnet_operator.client.jobs import main_replica, pods_of
from mxnet_operator.readers.durations import seconds_between
from mxnet_operator.readers.long_result import reference
from mxnet_operator.readers.pods import main_state, outcome_of, status_of, terminated_of
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.report import MissingMatplotlibError, Run, html, require_matplotlib


def check_report(path: Path) -> None:
    """Reject a report file that couldn't be written once the job has ended.

    Raises:
        CommandError: the file can't be written there, or matplotlib is not installed.
    """
    if problem := _why_unwritable(path):
        raise CommandError(f"--report {path}: {problem}", code=Exit.USAGE)
    try:
        require_matplotlib()
    except MissingMatplotlibError as error:
        raise CommandError(f"--report {path}: {error}", code=Exit.USAGE) from error


def _why_unwritable(path: Path) -> str:
    """Return why a file can't be written; empty if it can."""
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except OSError as error:
        return str(error.strerror)
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    return "" if os.access(path if path.exists() else path.parent, os.W_OK) else "it can't be written"


def write_report(path: Path, job: dict[str, Any], pods: Iterable[dict[str, Any]], training: TrainingLog) -> None:
    """Write the report of a finished job.

    Raises:
        ReportError: the report can't be drawn, or the file can't be written.
    """
    try:
        page = html(finished_run(job, pods, training))
    except MissingMatplotlibError as error:
        raise ReportError(str(error)) from error
    except Exception as error:  # whatever a picture fails by, the job's outcome is known
        raise ReportError(f"the report can't be drawn: {type(error).__name__}: {error}") from error
    try:
        path.write_bytes(page.encode("utf-8", "replace"))
    except OSError as error:
        raise ReportError(f"the report can't be written: {error}") from error


def finished_run(job: dict[str, Any], pods: Iterable[dict[str, Any]], training: TrainingLog) -> Run:
    """Build the run that the report describes; figures that the script reports take precedence over its log's."""
    metadata, status = job["metadata"], job.get("status") or {}
    own = pods_of(job, pods)
    from_log, reported = training.history(), storable(_result(job, own))
    started, completed = status.get("startTime"), status.get("completionTime")
    return msgspec.convert(
        {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "state": job_state(job) or "new",
            "started_at": started,
            "completed_at": completed,
            "duration_s": seconds_between(started, completed),
            "message": terminal_message(job),
            "replicas": sorted((_replica(pod) for pod in own), key=_position),
            "result": from_log | reported,
            "from_log": [name for name in from_log if name not in reported],
        },
        Run,
    )


def _replica(pod: dict[str, Any]) -> dict[str, Any]:
    metadata, running, (_, ended) = pod["metadata"], main_state(status_of(pod)).running, terminated_of(pod)
    labels = metadata.get("labels") or {}
    return {
        "pod": metadata["name"],
        "type": labels.get(names.LABEL_REPLICA_TYPE, ""),
        "index": int(labels.get(names.LABEL_REPLICA_INDEX, "0")),
        "created_at": metadata.get("creationTimestamp"),
        "started_at": ended.get("startedAt") or (running.started_at if running is not None else None),
        "finished_at": ended.get("finishedAt"),
        "exit_code": ended.get("exitCode"),
        "outcome": outcome_of(pod),
    }


def _position(replica: dict[str, Any]) -> tuple[int, int]:
    kind = names.canonical_type(replica["type"])
    return names.REPLICA_TYPES.index(kind) if kind else len(names.REPLICA_TYPES), replica["index"]


def _result(job: dict[str, Any], pods: list[dict[str, Any]]) -> dict[str, Any]:
    """Read what the main replica wrote to its termination message, where that is a JSON object."""
    text = (job.get("status") or {}).get("result") or _main_message(job, pods)
    result = None if reference(text) else json_or_text(text)
    return result if isinstance(result, dict) else {}


def _main_message(job: dict[str, Any], pods: list[dict[str, Any]]) -> str:
    main = f"{job['metadata']['name']}-{main_replica(job)}"
    for pod in pods:
        if pod["metadata"]["name"] == main:
            ended = main_state(status_of(pod)).terminated
            return ended.message if ended is not None else ""
    return ""
