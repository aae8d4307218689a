"""MXJobDescription, as taken by the Airflow operator, the Hera classes, the client and `mxjob run`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from mxnet_operator.api.structural import FieldError
from mxnet_operator.description.checks import DescriptionError, Later, checks_of, field_problems, given_fields
from mxnet_operator.description.plain import plain
from mxnet_operator.description.pods import Number, Placeholder, PodDescription, Role, Seconds, Text


@dataclass(frozen=True, kw_only=True)
class MXJobDescription(PodDescription):
    """Description of a training job: one image, and one command that every replica runs.

    A field that is None is unset: without a manifest its default applies, beside a manifest the manifest's value.

    Args:
        name: Name of the job.
        namespace: Namespace of the job.
        labels: Labels of the job; those of its pods are `pod_labels`.
        annotations: Annotations of the job.
        workers: Number of workers, a `Role`, or a ReplicaSpec; unset, 1.
        servers: Number of servers, a `Role`, or a ReplicaSpec; unset, as many as workers, and none for a single
            worker.
        schedulers: 1 or 0, a `Role`, or a ReplicaSpec; unset, 1 if there are servers.
        gpus_per_worker: GPUs of each worker; 0 removes those of a manifest.
        restart_policy: Which failures are retried; unset, `ExitCode`: those with a retryable exit code.
        queue_name: Kueue LocalQueue that admits the job; until then the job is Suspended.
        placement: `Pack`: workers share nodes. `Exclusive`: no other MXJob runs on the job's nodes.
        clean_pod_policy: Which pods are deleted when the job finishes; unset, none.
        ttl_seconds_after_finished: Time after which a finished job is deleted; unset, never.
        active_deadline_seconds: Time after which an unfinished job fails, its wait for nodes included; unset,
            never.
        progress_deadline_seconds: Time within which all placed pods must start, or the job fails; unset, no
            limit.
        backoff_limit: Number of failures that are retried; unset, 6.
        restart_scope: What a retry restarts: all replicas (`Job`), or the failed one (`Replica`).
        success_policy: Who must exit with 0; unset, the Scheduler and every Worker.
        run_policy: Further fields of `spec.runPolicy`: `{"resume": {}, "stallTimeoutSeconds": 600}`.

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
        if found := problems(plain(given_fields(self))):
            raise DescriptionError(found)


_CHECKS: Final = checks_of(MXJobDescription)
FIELDS: Final = tuple(_CHECKS)


def problems(given: Mapping[str, Any], later: Later = lambda value: isinstance(value, Placeholder)) -> list[FieldError]:
    """List every mistake in fields of a description, as `plain` returns them, in the order of the fields.

    None stands for a field that isn't given. `later` tells which values can't be checked yet.
    """
    return list(field_problems(given, _CHECKS, later))
