"""MXJobDescription, as taken by the Airflow operator, the Hera classes, the client and `mxjob run`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mxnet_operator.description.checks import DescriptionError, given_fields, problems
from mxnet_operator.description.placeholder import Placeholder
from mxnet_operator.description.plain import plain
from mxnet_operator.description.pods import Number, PodDescription, Role, Seconds, Text


@dataclass(frozen=True, kw_only=True)
class MXJobDescription(PodDescription):
    """Description of a training job: one image, and one command that every replica runs.

    Whatever is None is not said: without a manifest the defaults stand for it, over a manifest what that says.

    Args:
        name: The job's name.
        namespace: The job's namespace.
        labels: Labels of the job; `pod_labels` are those of its pods.
        annotations: Annotations of the job.
        workers: How many train, or a `Role`, or a ReplicaSpec; 1 if not given.
        servers: How many keep parameters, or a `Role`, or a ReplicaSpec. If not given, as many as there are workers,
            as MXNet's launcher has it; a single worker trains alone, without any.
        schedulers: 1 or 0, or a `Role`, or a ReplicaSpec; if not given, 1 where there are servers.
        gpus_per_worker: GPUs of each Worker; 0 takes away those of a manifest.
        restart_policy: Never, OnFailure, Always or ExitCode, of all replicas; ExitCode if not given.
        queue_name: A queue of Kueue's that starts the job when there is room; till then it is Suspended.
        placement: Pack (Workers on few nodes, Servers on many) or Exclusive (few nodes, no other job's).
        clean_pod_policy: Which pods of a finished job are deleted: None, Running or All.
        ttl_seconds_after_finished: Seconds (or a timedelta) after which a finished job is deleted.
        active_deadline_seconds: Seconds (or a timedelta) after which the job fails.
        progress_deadline_seconds: Seconds (or a timedelta) within which all pods must have started.
        backoff_limit: Retries before the job fails; 6 if not given.
        restart_scope: What a retry restarts: Job (all replicas) or Replica.
        success_policy: Who must exit with 0: Scheduler or AllWorkers.
        run_policy: Further fields of spec.runPolicy.

    Raises:
        DescriptionError: with every mistake that was found, its path, and how it is written.
    """

    name: str | None = None
    namespace: str | None = None
    labels: Mapping[str, Text] | None = None
    annotations: Mapping[str, Text] | None = None
    workers: Number | Role | Mapping[str, Any] | None = None
    servers: Number | Role | Mapping[str, Any] | None = None
    schedulers: Number | Role | Mapping[str, Any] | None = None
    gpus_per_worker: Number | None = None
    restart_policy: Literal["Never", "OnFailure", "Always", "ExitCode"] | Placeholder | None = None
    queue_name: Text | None = None
    placement: Literal["Pack", "Exclusive"] | Placeholder | None = None
    clean_pod_policy: Literal["None", "Running", "All"] | Placeholder | None = None
    ttl_seconds_after_finished: Seconds | None = None
    active_deadline_seconds: Seconds | None = None
    progress_deadline_seconds: Seconds | None = None
    backoff_limit: Number | None = None
    restart_scope: Literal["Job", "Replica"] | Placeholder | None = None
    success_policy: Literal["Scheduler", "AllWorkers"] | Placeholder | None = None
    run_policy: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Reject an invalid description when it is made."""
        if found := problems(plain(given_fields(self))):
            raise DescriptionError(found)


__all__ = ["MXJobDescription"]
