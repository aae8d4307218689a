"""Types of the v1 MXJob in msgspec: camelCase on the wire, snake_case here, immutable once decoded.

The fields are training-operator 1.8.1's, plus the optional additions that are marked as ours. The CRD is generated
from these types (`api/crd.py`): a bound or an enumeration is written here and nowhere else, and so is a field's
description, which is its docstring.
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
"""Placeholder for the generated schema of a pod template (`api/schemas.py` puts it there)."""

Int32 = Annotated[int, Meta(ge=0, extra_json_schema=_INT32)]
MAX_RESULT = 4096
"""Maximum characters; the kubelet keeps so many bytes of a termination message."""
MAX_REPLICAS = 10_000
"""Maximum pods of one type. ps-lite meets its own limits far below; a typo must not become a million pods."""

Replicas = Annotated[int, Meta(ge=0, le=MAX_REPLICAS, extra_json_schema={"format": "int32"})]
ReplicaCount = Annotated[
    Replicas | None, Meta(description="replicas is the number of pods of this type. Defaults to 1.")
]
Positive = Annotated[int, Meta(ge=1, extra_json_schema=_INT32)]
Int64 = Annotated[int, Meta(ge=0, extra_json_schema=_INT64)]
Timestamp = Annotated[datetime, Meta(tz=True)]
ObjectName = Annotated[str, Meta(max_length=253)]
ExitCode = Annotated[int, Meta(ge=1, le=255, extra_json_schema={"format": "int32"})]
Template = Annotated[
    dict[str, Any],
    Meta(
        description="template is the PodTemplateSpec of the replicas. Fields that this version does not know reach the"
        " pod unchanged.",
        extra_json_schema={POD_TEMPLATE: True},
    ),
]
RestartPolicy = Literal["", "Always", "ExitCode", "Never", "OnFailure"]
CleanPodPolicy = Literal["", "All", "None", "Running"]


class ReplicaSpec(ApiStruct, frozen=True, kw_only=True):
    """ReplicaSpec describes the replicas of one type."""

    replicas: ReplicaCount = None
    restart_policy: RestartPolicy | None = None
    """restartPolicy defines whether a failed replica is retried: Never (default), OnFailure, Always (the same as
    OnFailure), or ExitCode, where the exit code decides."""
    template: Template


class SchedulingPolicy(ApiStruct, frozen=True, kw_only=True):
    """SchedulingPolicy describes how the pods of a job are scheduled together, where there is a gang scheduler."""

    min_available: Int32 | None = None
    """minAvailable is the number of pods that are placed at once or not at all. Defaults to all pods of the job."""
    queue: ObjectName | None = None
    """queue is the name of Volcano's queue. Kueue's is a label."""
    min_resources: Annotated[dict[str, Any] | None, Meta(extra_json_schema={**_PRESERVE})] = None
    """minResources is what the pods need together. Defaults to the sum of what the first minAvailable pods request;
    scheduler-plugins gets no default."""
    priority_class: ObjectName | None = None
    """priorityClass is the name of the PriorityClass of the pod group, and of pods whose template has none. Defaults to
    that of the templates, where all have the same."""
    schedule_timeout_seconds: Int32 | None = None
    """scheduleTimeoutSeconds is the time in seconds from the pods' creation, after which the job fails unless
    minAvailable of them have been placed."""


class ExitCodes(ApiStruct, frozen=True, kw_only=True):
    """ExitCodes overrides the exit codes that restartPolicy ExitCode retries. Not in 1.8.1."""

    retryable: Annotated[tuple[ExitCode, ...], Meta(max_length=255)] = ()
    """retryable lists the exit codes after which a replica is retried."""
    permanent: Annotated[tuple[ExitCode, ...], Meta(max_length=255)] = ()
    """permanent lists the exit codes that fail the job."""


class Resume(ApiStruct, frozen=True, kw_only=True):
    """Resume lets a new attempt go on from the newest complete checkpoint of the attempts before.

    Not in 1.8.1.
    """

    checkpoint: Annotated[str, Meta(max_length=1024, pattern=r"\{epoch\}")] | None = None
    """checkpoint is the path of a checkpoint: {epoch} is its number, {rank} each Worker's rank, {-rank} the same after
    a dash (nothing for rank 0, or where no other rank has a file), {--name} the value of the script's option --name, *
    anything. Default: MXNet's {--model-prefix}{-rank}-{epoch}.params."""
    args: Annotated[tuple[str, ...], Meta(max_length=64)] | None = None
    """args are appended to the script's arguments; {epoch}, {epoch+1} and {checkpoint}, rank 0's file, are replaced.
    Default: --load-epoch {epoch} without a checkpoint of your own, else none."""


class EarlyStopping(ApiStruct, frozen=True, kw_only=True):
    """EarlyStopping ends a job as Succeeded once a metric of its training is beyond a bound. Not in 1.8.1."""

    metric: Annotated[str, Meta(max_length=64)]
    """metric is a name in status.training.metrics: validation_accuracy."""
    start_epoch: Int32
    """startEpoch is the first epoch whose value counts, as the script numbers it."""
    below: float | None = None
    """below is the bound under which a value ends the job."""
    above: float | None = None
    """above is the bound over which a value ends the job."""


class RunPolicy(ApiStruct, frozen=True, kw_only=True):
    """RunPolicy describes how the job as a whole runs, is retried, ends and is cleaned up."""

    clean_pod_policy: CleanPodPolicy | None = None
    """cleanPodPolicy defines which pods of a finished job are deleted: None (default), Running or All."""
    ttl_seconds_after_finished: Int32 | None = None
    """ttlSecondsAfterFinished is the time in seconds after which a finished job is deleted. If unset, it is not
    deleted."""
    active_deadline_seconds: Int64 | None = None
    """activeDeadlineSeconds is the time in seconds, counted from status.startTime, after which the job fails."""
    backoff_limit: Int32 | None = None
    """backoffLimit is the number of retries before the job fails. Disruptions of pods, such as an eviction by a node
    drain, do not count. Defaults to 6."""
    suspend: Annotated[bool | None, Meta(extra_json_schema={"x-default": False})] = None
    """suspend deletes the pods of the job, or prevents their creation, while it is true."""
    scheduling_policy: SchedulingPolicy | None = None
    restart_scope: Literal["Job", "Replica"] | None = None
    """restartScope defines what a retry restarts: Job (all replicas) or Replica (the failed one). Defaults to Replica
    for tuning and for a lone Worker, else to Job. Not in 1.8.1."""
    exit_codes: ExitCodes | None = None
    progress_deadline_seconds: Int32 | None = None
    """progressDeadlineSeconds is the time in seconds, counted from when all pods are scheduled, after which the job
    fails unless all pods have started. Not in 1.8.1."""
    fail_fast: bool | None = None
    """failFast adds a hook to the pods with which a worker whose Python program fails exits at once, where MXNet would
    hang. Defaults to true. Not in 1.8.1."""
    stall_timeout_seconds: Positive | None = None
    """stallTimeoutSeconds is the time in seconds after which a Worker that uses no CPU and writes nothing exits with
    138. Not in 1.8.1."""
    fail_on_divergence: bool | None = None
    """failOnDivergence ends a Worker that logs a figure of an epoch which is NaN or infinite, with exit code 65. Not in
    1.8.1."""
    resume: Resume | None = None
    early_stopping: EarlyStopping | None = None
    min_workers: Positive | None = None
    """minWorkers is how many Workers a restarted gang needs if there are no nodes for all. Not in 1.8.1."""
    placement: Literal["Pack", "Exclusive"] | None = None
    """placement adds affinities: Pack (Workers on few nodes, Servers on many) or Exclusive (few nodes, no other job's).
    Not in 1.8.1."""


class MXJobSpec(ApiStruct, frozen=True, kw_only=True):
    """MXJobSpec is the desired state of an MXJob."""

    job_mode: Annotated[str, Meta(max_length=63)]
    """jobMode is MXTrain for training or MXTune for tuning."""
    mx_replica_specs: Annotated[
        dict[str, ReplicaSpec],
        Meta(
            description="mxReplicaSpecs maps replica types to their replicas. The types are"
            f" {', '.join(names.REPLICA_TYPES)}.",
            max_length=len(names.REPLICA_TYPES),
        ),
    ]
    run_policy: RunPolicy = RunPolicy()
    success_policy: Literal["", "AllWorkers", "Scheduler"] | None = None
    """successPolicy defines which replicas must exit with 0 for the job to succeed: Scheduler or AllWorkers. Defaults
    to the Scheduler and all Workers, or to the Tuner. Not in 1.8.1."""

    @property
    def specs_in_use(self) -> dict[str, ReplicaSpec]:
        """The specs of which there is a replica; those listed with `replicas: 0`, as charts do, decide nothing."""
        return {name: spec for name, spec in self.mx_replica_specs.items() if spec.replicas != 0}


class Condition(ApiStruct, frozen=True, kw_only=True, omit_defaults=False):
    """Condition describes one aspect of the state of an MXJob."""

    type: str
    """type is the type of the condition, such as Running or PodsScheduled."""
    status: Literal["True", "False", "Unknown"]
    """status is the status of the condition: True, False or Unknown."""
    reason: str = ""
    """reason is a CamelCase identifier of the reason for the last change of the condition."""
    message: str = ""
    """message is a human-readable explanation of the condition."""
    last_update_time: Timestamp | None = None
    """lastUpdateTime is when the condition was last updated."""
    last_transition_time: Timestamp | None = None
    """lastTransitionTime is when the status of the condition last changed."""


class ReplicaStatus(ApiStruct, frozen=True, kw_only=True):
    """ReplicaStatus counts the replicas of one type by their state."""

    active: Int32 = 0
    """active is the number of running replicas."""
    succeeded: Int32 = 0
    """succeeded is the number of replicas that have succeeded."""
    failed: Int32 = 0
    """failed is the number of replicas that have failed."""


class Metric(ApiStruct, frozen=True, kw_only=True):
    """Metric is the newest value of one figure of a training."""

    name: Annotated[str, Meta(max_length=64)]
    """name is the figure, such as validation_accuracy."""
    value: Annotated[str, Meta(max_length=64)]
    """value is its newest number, as text."""


class SlowWorker(ApiStruct, frozen=True, kw_only=True):
    """SlowWorker is a worker below 70 % of the workers' median speed."""

    name: Annotated[str, Meta(max_length=64)]
    """name is the replica, such as worker-0."""
    node: Annotated[str, Meta(max_length=253)] = ""
    """node is where its pod runs."""
    percent: Int32 = 0
    """percent is its share of the median speed."""


class StalledWorker(ApiStruct, frozen=True, kw_only=True):
    """StalledWorker is where one worker of a stalled job stands; without a place, it writes lines or has ended."""

    name: Annotated[str, Meta(max_length=64)]
    """name is the replica, such as worker-0."""
    seconds: Int32 = 0
    """seconds is the time without CPU use and output."""
    place: Annotated[str, Meta(max_length=128)] = ""
    """place is the file and line, such as train.py:11."""
    function: Annotated[str, Meta(max_length=128)] = ""
    """function is the Python function there."""
    in_mxnet: bool = False
    """inMxnet says that MXNet waits in the function: another worker is the likely cause."""


class TrainingStatus(ApiStruct, frozen=True, kw_only=True):
    """TrainingStatus is what a job's logs say of its training; names that Kubeflow Trainer has mean the same there."""

    epoch: Int32 | None = None
    """epoch is the newest epoch, as the script numbers it."""
    epochs: Int32 | None = None
    """epochs is how many the training is to have."""
    progress_percentage: Annotated[int, Meta(ge=0, le=100, extra_json_schema={"format": "int32"})] | None = None
    """progressPercentage is the share of epochs that have ended."""
    estimated_remaining_seconds: Int32 | None = None
    """estimatedRemainingSeconds is the time left, as of lastUpdatedTime."""
    metrics: tuple[Metric, ...] = ()
    """metrics is the newest value of each figure."""
    warnings: tuple[str, ...] = ()
    """warnings says what is wrong: a figure is NaN, an accuracy has not moved."""
    slow_workers: tuple[SlowWorker, ...] = ()
    """slowWorkers lists workers that are slower than the others."""
    stalled: tuple[StalledWorker, ...] = ()
    """stalled says where each worker stands, while the job is stalled."""
    last_updated_time: Timestamp | None = None
    """lastUpdatedTime is when the logs were read."""


class MXJobStatus(ApiStruct, frozen=True, kw_only=True):
    """MXJobStatus is the observed state of an MXJob."""

    state: Literal["", "Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"] = ""
    """state is the conditions in one word, for clients that compare scalars, such as Argo and kubectl wait. Not in
    1.8.1."""
    ready: str = ""
    """ready is how many replicas run or have succeeded, such as "3/4". Not in 1.8.1."""
    duration: str = ""
    """duration is the time from startTime to the end of the job. Not in 1.8.1."""
    training: TrainingStatus | None = None
    """training is what the workers' logs say of the training. Not in 1.8.1."""
    url: str = ""
    """url is the job's page."""
    conditions: tuple[Condition, ...] = ()
    """conditions is the list of current conditions of the job."""
    replica_statuses: dict[str, ReplicaStatus] = {}
    completed_indexes: dict[str, str] = {}
    """completedIndexes maps replica types to the indexes of replicas that succeeded: "0-2,5". Not in 1.8.1."""
    # Said by the server, or `kubectl get` would show nothing where it is 0.
    restarts: Annotated[Int32, Meta(extra_json_schema={"x-default": 0})] = 0
    """restarts counts restarts of the job, or of single replicas, after failures, disruptions and suspensions. Not in
    1.8.1."""
    restarts_count_towards_max: Int32 = 0
    """restartsCountTowardsMax is the number of restarts that count against backoffLimit. Not in 1.8.1."""
    restarting_pods: Annotated[tuple[str, ...], Meta(max_length=MAX_REPLICAS)] = ()
    """restartingPods lists the uids of pods being replaced under restartScope Replica. Not in 1.8.1."""
    first_attempt: Int32 = 0
    """firstAttempt is the value of restarts when the job was started, resumed, or gave up pods that waited for nodes:
    pods of earlier attempts are deleted. Not in 1.8.1."""
    result: Annotated[str, Meta(max_length=MAX_RESULT)] = ""
    """result is what Worker 0, or the Tuner, wrote to /dev/termination-log before it exited with 0. Not in 1.8.1."""
    started_replicas: dict[str, Int32] = {}
    """startedReplicas maps replica types to the number of replicas with which the job was started; it holds until the
    job is suspended. Not in 1.8.1."""
    fewer_replicas: dict[str, Int32] = {}
    """fewerReplicas replaces startedReplicas in the current attempt. Not in 1.8.1."""
    created_attempts: Int32 = 0
    """createdAttempts is restarts + 1 once all pods of the attempt were created. Not in 1.8.1."""
    started_scope: str = ""
    """startedScope is the restartScope with which the job was started; it is in effect until the job is suspended. Not
    in 1.8.1."""
    start_time: Timestamp | None = None
    """startTime is when the job was started or last resumed. A suspension clears it."""
    completion_time: Timestamp | None = None
    """completionTime is when the job succeeded or failed."""
    last_reconcile_time: Timestamp | None = None
    """lastReconcileTime is accepted from 1.8.1 and never set."""


class ObjectMeta(ApiStruct, frozen=True, kw_only=True):
    """ObjectMeta is the part of an object's metadata that the project reads."""

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

    @property
    def key(self) -> str:
        """Key in caches and work queues: `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class MXJob(ApiStruct, frozen=True, kw_only=True):
    """MXJob is an MXNet training or a TVM tuning with all of its processes."""

    api_version: str = names.API_VERSION
    kind: str = names.KIND
    metadata: ObjectMeta = ObjectMeta()
    spec: MXJobSpec
    status: MXJobStatus = MXJobStatus()
