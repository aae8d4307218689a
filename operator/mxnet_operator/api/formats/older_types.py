"""Types of the fields that older formats have and v1 lacks, in spec and status."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mxnet_operator.api.types import (
    ApiStruct,
    CleanPodPolicy,
    Int32,
    Int64,
    ObjectName,
    ReplicaCount,
    ReplicaSpec,
    SchedulingPolicy,
    Template,
)

MAX_ENTRIES = 6
"""Maximum number of entries of a map or list of replicas: there are three types."""

Text = Annotated[str, Meta(max_length=253)]
Port = Annotated[int, Meta(ge=1, le=65535, extra_json_schema={"format": "int32"})]
ListType = Literal["", "SCHEDULER", "SERVER", "WORKER"]


class Chief(ApiStruct, frozen=True, kw_only=True):
    """Chief names the replica whose exit decides the result of the job."""

    replica_name: ListType | None = None
    """replicaName is the type of the chief: SCHEDULER (default) or WORKER."""
    replica_index: Int32 | None = None
    """replicaIndex is the index of the chief, which is 0."""


class TerminationPolicy(ApiStruct, frozen=True, kw_only=True):
    """TerminationPolicy describes when a job has succeeded."""

    chief: Chief | None = None


class ListReplica(ApiStruct, frozen=True, kw_only=True):
    """ListReplica describes the replicas of one type."""

    mx_replica_type: ListType | None = None
    """mxReplicaType is SCHEDULER, SERVER or WORKER. Defaults to WORKER, in fioravanzo.org to SCHEDULER."""
    replicas: ReplicaCount = None
    ps_root_port: Port | None = msgspec.field(default=None, name="PsRootPort")
    """PsRootPort is the port of the Scheduler. Defaults to 9091."""
    mx_port: Port | None = None
    """mxPort is the port of the Scheduler in fioravanzo.org. Defaults to 9000."""
    template: Template


class ListSpec(ApiStruct, frozen=True, kw_only=True):
    """ListSpec is the desired state of a job of kubeflow.org/v1alpha1, fioravanzo.org or mxnet.mlkube.io."""

    job_mode: Text | None = None
    """jobMode is dist or local."""
    replica_specs: Annotated[tuple[ListReplica, ...], Meta(max_length=MAX_ENTRIES)]
    """replicaSpecs lists the replicas, one entry for each type."""
    runtime_id: Text | None = msgspec.field(default=None, name="RuntimeId")
    """RuntimeId is ignored; the controller sets status.RuntimeId."""
    mx_image: Text | None = None
    """mxImage is ignored, as it always was."""
    termination_policy: TerminationPolicy | None = None
    cleanup_pod_policy: CleanPodPolicy | None = None
    """cleanupPodPolicy defines which pods of a finished job are deleted. Defaults to All."""
    scheduler_name: ObjectName | None = None
    """schedulerName is the scheduler of the pods whose template names none."""


class NetSpec(ApiStruct, frozen=True, kw_only=True):
    """NetSpec is the desired state of an MXNetJob."""

    replica_specs: Annotated[dict[str, ReplicaSpec], Meta(max_length=MAX_ENTRIES)]
    """replicaSpecs maps the types scheduler, server and worker to their replicas."""


class FlatSpec(ApiStruct, frozen=True, kw_only=True):
    """FlatSpec has the fields of v1's runPolicy where v1beta1 and mxnet-operator's v1 had them, directly in spec."""

    clean_pod_policy: CleanPodPolicy | None = None
    """cleanPodPolicy is v1beta1's runPolicy.cleanPodPolicy. Defaults to All."""
    ttl_seconds_after_finished: Int32 | None = None
    """ttlSecondsAfterFinished is v1beta1's runPolicy.ttlSecondsAfterFinished."""
    active_deadline_seconds: Int64 | None = None
    """activeDeadlineSeconds is kubeflow/mxnet-operator's runPolicy.activeDeadlineSeconds."""
    backoff_limit: Int32 | None = None
    """backoffLimit is kubeflow/mxnet-operator's runPolicy.backoffLimit."""
    scheduling_policy: SchedulingPolicy | None = None
    suspend: bool | None = None
    """suspend is kubeflow/mxnet-operator's runPolicy.suspend."""


class LabelledReplica(ApiStruct, frozen=True, kw_only=True):
    """LabelledReplica has the field of a v1beta1 replica that v1 lacks."""

    label: Text | None = None
    """label is the key of a TVM RPC server in v1beta1."""


FLAT_FIELDS = tuple(field.encode_name for field in msgspec.structs.fields(FlatSpec))
"""Fields of spec that v1 has under runPolicy."""
BETA_FIELDS = ("cleanPodPolicy", "ttlSecondsAfterFinished")
"""Fields of v1beta1's spec that v1 has under runPolicy."""


Opaque = Annotated[dict[str, Any], Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})]


class MapSpec(ApiStruct, frozen=True, kw_only=True):
    """MapSpec has the fields of spec that go with a map of replicas, not with a list."""

    mx_replica_specs: Opaque | None = None
    run_policy: Opaque | None = None
    success_policy: Text | None = None


class MapReplica(ApiStruct, frozen=True, kw_only=True):
    """MapReplica has the fields of a replica in a map that one in a list lacks."""

    restart_policy: Text | None = None
    label: Text | None = None


class OlderStatus(ApiStruct, frozen=True, kw_only=True):
    """OlderStatus has the fields of the status of older formats that v1 lacks."""

    form: str | None = None
    """form is the older format in which the job was written; unset for v1."""
    runtime_id: str | None = msgspec.field(default=None, name="RuntimeId")
    """RuntimeId is the first four characters of the uid, as in the pods' label runtime-id."""
    phase: Literal["", "Creating", "Running", "CleanUp", "Failed", "Done"] | None = None
    """phase is the phase of a job of v1alpha1, fioravanzo.org or mxnet.mlkube.io."""
    reason: str | None = None
    """reason explains a failure or restart, beside phase."""
    mx_replica_statuses: Opaque | None = None
    """mxReplicaStatuses is replicaStatuses under its name in v1beta1."""
