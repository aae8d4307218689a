"""The v1 MXJob as msgspec types: camelCase on the wire, snake_case here, immutable once decoded.

The fields are training-operator 1.8.1's, plus the optional additions that are marked as ours. The CRD is generated
from these types (`api/crd.py`): a description, a bound or an enumeration is written here and nowhere else.
"""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from mxnet_operator.api import names


class ApiStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of every type of the API."""


_INT32 = {"format": "int32", "maximum": 2**31 - 1}
_INT64 = {"format": "int64"}
_PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}

POD_TEMPLATE: Final = "x-pod-template"
"""Where the generated schema of a template belongs in a job's (`api/schemas.py` puts it there)."""

Int32 = Annotated[int, Meta(ge=0, extra_json_schema=_INT32)]
MAX_RESULT = 4096
"""Characters; the kubelet keeps so many bytes of a termination message."""
MAX_REPLICAS = 10_000
"""Pods of one type. ps-lite meets its own limits far below; a typo must not become a million pods."""

Replicas = Annotated[int, Meta(ge=0, le=MAX_REPLICAS, extra_json_schema={"format": "int32"})]
Int64 = Annotated[int, Meta(ge=0, extra_json_schema=_INT64)]
Timestamp = Annotated[datetime, Meta(tz=True)]
ObjectName = Annotated[str, Meta(max_length=253)]
ExitCode = Annotated[int, Meta(ge=1, le=255, extra_json_schema={"format": "int32"})]
Template = Annotated[
    dict[str, Any],
    Meta(
        description="A PodTemplateSpec, as Kubernetes has it; fields unknown here reach the pod untouched.",
        extra_json_schema={POD_TEMPLATE: True},
    ),
]
RestartPolicy = Literal["", "Always", "ExitCode", "Never", "OnFailure"]
CleanPodPolicy = Literal["", "All", "None", "Running"]


class ReplicaSpec(ApiStruct, frozen=True, kw_only=True):
    """The replicas of one type."""

    replicas: Annotated[Replicas | None, Meta(description="How many pods of this type. Default 1.")] = None
    restart_policy: Annotated[
        RestartPolicy | None,
        Meta(description="What a failed replica does: Never (default), OnFailure, Always, or ExitCode."),
    ] = None
    template: Template


class SchedulingPolicy(ApiStruct, frozen=True, kw_only=True):
    """How the pods of a job are placed together."""

    min_available: Annotated[Int32 | None, Meta(description="Pods that must fit at once.")] = None
    queue: ObjectName | None = None
    min_resources: Annotated[
        dict[str, Any] | None,
        Meta(extra_json_schema={**_PRESERVE}),
    ] = None
    priority_class: ObjectName | None = None
    schedule_timeout_seconds: Int32 | None = None


class ExitCodes(ApiStruct, frozen=True, kw_only=True):
    """Exceptions to the table of exit codes, for restartPolicy ExitCode (ours)."""

    retryable: Annotated[tuple[ExitCode, ...], Meta(max_length=255)] = ()
    permanent: Annotated[tuple[ExitCode, ...], Meta(max_length=255)] = ()


class RunPolicy(ApiStruct, frozen=True, kw_only=True):
    """How the job as a whole runs, ends and is cleaned up."""

    clean_pod_policy: Annotated[
        CleanPodPolicy | None,
        Meta(description="Which pods of a finished job are deleted: None (default), Running or All."),
    ] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None, Meta(description="Seconds after which a finished job is deleted. Unset: never.")
    ] = None
    active_deadline_seconds: Annotated[
        Int64 | None, Meta(description="Seconds from startTime after which the job fails.")
    ] = None
    backoff_limit: Annotated[
        Int32 | None, Meta(description="Restarts after failures before the job fails. Default 6.")
    ] = None
    suspend: Annotated[
        bool | None, Meta(description="True: no pods. Default false.", extra_json_schema={"x-default": False})
    ] = None
    scheduling_policy: SchedulingPolicy | None = None
    restart_scope: Annotated[
        Literal["Job", "Replica"] | None,
        Meta(description="What a retry brings back: the whole gang, or the failed replica (ours)."),
    ] = None
    exit_codes: ExitCodes | None = None
    progress_deadline_seconds: Annotated[
        Int32 | None,
        Meta(description="Seconds from when all pods are scheduled until all must have started (ours)."),
    ] = None
    fail_fast: Annotated[
        bool | None,
        Meta(description="False: no hook that makes a failing worker exit at once. Default true (ours)."),
    ] = None


class MXJobSpec(ApiStruct, frozen=True, kw_only=True):
    """What a user asks for."""

    job_mode: Annotated[str, Meta(description="MXTrain or MXTune.", max_length=63)]
    mx_replica_specs: Annotated[
        dict[str, ReplicaSpec],
        Meta(
            description=f"The replicas by type: {', '.join(names.REPLICA_TYPES)}.",
            max_length=len(names.REPLICA_TYPES),
        ),
    ]
    run_policy: RunPolicy = RunPolicy()
    success_policy: Annotated[
        Literal["", "AllWorkers", "Scheduler"] | None,
        Meta(description="Who decides success. Default: the Scheduler and every Worker (ours)."),
    ] = None


class Condition(ApiStruct, frozen=True, kw_only=True, omit_defaults=False):
    """One condition of a job, in the words of training-operator 1.8.1."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    last_update_time: Timestamp | None = None
    last_transition_time: Timestamp | None = None


class ReplicaStatus(ApiStruct, frozen=True, kw_only=True):
    """Pods of one type by where they are."""

    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0


class MXJobStatus(ApiStruct, frozen=True, kw_only=True):
    """What became of it."""

    state: Annotated[
        Literal["", "Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"],
        Meta(description="The conditions in one word (ours): Argo and kubectl wait compare scalars."),
    ] = ""
    ready: Annotated[
        str, Meta(description='How many of the replicas run or are done, as "3/4" (ours): for `kubectl get`.')
    ] = ""
    duration: Annotated[
        str, Meta(description="How long the job took, as 1h5m; set when it is over (ours): for `kubectl get`.")
    ] = ""
    conditions: tuple[Condition, ...] = ()
    replica_statuses: dict[str, ReplicaStatus] = {}
    completed_indexes: Annotated[
        dict[str, str],
        Meta(description='Replicas that are done for good, by type, in the form of Job: "0-2,5" (ours).'),
    ] = {}
    restarts: Annotated[
        Int32,
        Meta(
            description="Attempts that were torn down: after failures, disruptions and suspensions (ours).",
            # Said by the server, or `kubectl get` would show nothing where it is 0.
            extra_json_schema={"x-default": 0},
        ),
    ] = 0
    restarts_count_towards_max: Annotated[
        Int32, Meta(description="Those of them that count against runPolicy.backoffLimit (ours).")
    ] = 0
    restarting_pods: Annotated[
        tuple[str, ...],
        Meta(
            max_length=MAX_REPLICAS,
            description="uids of pods that are being replaced one by one, for restartScope Replica (ours).",
        ),
    ] = ()
    result: Annotated[
        str,
        Meta(
            max_length=MAX_RESULT,
            description="What Worker 0, or the Tuner, wrote to /dev/termination-log before it exited with 0 (ours).",
        ),
    ] = ""
    started_replicas: Annotated[
        dict[str, Int32],
        Meta(description="Replicas by type that the job was started with; they stay until it is suspended (ours)."),
    ] = {}
    created_attempts: Annotated[
        Int32,
        Meta(description="Attempts of a gang all of whose pods were created: restarts + 1 from then on (ours)."),
    ] = 0
    started_scope: Annotated[
        str, Meta(description="The restartScope that the job was started with; it stays until it is suspended (ours).")
    ] = ""
    start_time: Timestamp | None = None
    completion_time: Timestamp | None = None
    last_reconcile_time: Timestamp | None = None


class ObjectMeta(ApiStruct, frozen=True, kw_only=True):
    """What we read of an object's metadata."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class MXJob(ApiStruct, frozen=True, kw_only=True):
    """A job: one MXNet training or one TVM tuning, with all its processes."""

    api_version: str = names.API_VERSION
    kind: str = names.KIND
    metadata: ObjectMeta = ObjectMeta()
    spec: MXJobSpec
    status: MXJobStatus = MXJobStatus()
