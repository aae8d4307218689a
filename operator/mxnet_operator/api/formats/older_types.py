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

    replica_name: Annotated[
        ListType | None, Meta(description="replicaName is the type of the chief: SCHEDULER (default) or WORKER.")
    ] = None
    replica_index: Annotated[Int32 | None, Meta(description="replicaIndex is the index of the chief, which is 0.")] = (
        None
    )


class TerminationPolicy(ApiStruct, frozen=True, kw_only=True):
    """TerminationPolicy describes when a job has succeeded."""

    chief: Chief | None = None


class ListReplica(ApiStruct, frozen=True, kw_only=True):
    """ListReplica describes the replicas of one type."""

    mx_replica_type: Annotated[
        ListType | None,
        Meta(
            description="mxReplicaType is SCHEDULER, SERVER or WORKER. Defaults to WORKER, in fioravanzo.org to"
            " SCHEDULER."
        ),
    ] = None
    replicas: ReplicaCount = None
    ps_root_port: Annotated[
        Port | None, Meta(description="PsRootPort is the port of the Scheduler. Defaults to 9091.")
    ] = msgspec.field(default=None, name="PsRootPort")
    mx_port: Annotated[
        Port | None, Meta(description="mxPort is the port of the Scheduler in fioravanzo.org. Defaults to 9000.")
    ] = None
    template: Template


class ListSpec(ApiStruct, frozen=True, kw_only=True):
    """ListSpec is the desired state of a job of kubeflow.org/v1alpha1, fioravanzo.org or mxnet.mlkube.io."""

    job_mode: Annotated[Text | None, Meta(description="jobMode is dist or local.")] = None
    replica_specs: Annotated[
        tuple[ListReplica, ...],
        Meta(description="replicaSpecs lists the replicas, one entry for each type.", max_length=MAX_ENTRIES),
    ]
    runtime_id: Annotated[
        Text | None, Meta(description="RuntimeId is ignored; the controller sets status.RuntimeId.")
    ] = msgspec.field(default=None, name="RuntimeId")
    mx_image: Annotated[Text | None, Meta(description="mxImage is ignored, as it always was.")] = None
    termination_policy: TerminationPolicy | None = None
    cleanup_pod_policy: Annotated[
        CleanPodPolicy | None,
        Meta(description="cleanupPodPolicy defines which pods of a finished job are deleted. Defaults to All."),
    ] = None
    scheduler_name: Annotated[
        ObjectName | None,
        Meta(description="schedulerName is the scheduler of the pods whose template names none."),
    ] = None


class FlatSpec(ApiStruct, frozen=True, kw_only=True):
    """FlatSpec has the fields of v1's runPolicy where v1beta1 and mxnet-operator's v1 had them, directly in spec."""

    clean_pod_policy: Annotated[
        CleanPodPolicy | None,
        Meta(description="cleanPodPolicy is v1beta1's runPolicy.cleanPodPolicy. Defaults to All."),
    ] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None,
        Meta(description="ttlSecondsAfterFinished is v1beta1's runPolicy.ttlSecondsAfterFinished."),
    ] = None
    active_deadline_seconds: Annotated[
        Int64 | None,
        Meta(description="activeDeadlineSeconds is kubeflow/mxnet-operator's runPolicy.activeDeadlineSeconds."),
    ] = None
    backoff_limit: Annotated[
        Int32 | None, Meta(description="backoffLimit is kubeflow/mxnet-operator's runPolicy.backoffLimit.")
    ] = None
    scheduling_policy: SchedulingPolicy | None = None
    suspend: Annotated[bool | None, Meta(description="suspend is kubeflow/mxnet-operator's runPolicy.suspend.")] = None


class LabelledReplica(ApiStruct, frozen=True, kw_only=True):
    """LabelledReplica has the field of a v1beta1 replica that v1 lacks."""

    label: Annotated[Text | None, Meta(description="label is the key of a TVM RPC server in v1beta1.")] = None


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

    form: Annotated[
        str | None, Meta(description="form is the older format in which the job was written; unset for v1.")
    ] = None
    runtime_id: Annotated[
        str | None,
        Meta(description="RuntimeId is the first four characters of the uid, as in the pods' label runtime-id."),
    ] = msgspec.field(default=None, name="RuntimeId")
    phase: Annotated[
        Literal["", "Creating", "Running", "CleanUp", "Failed", "Done"] | None,
        Meta(description="phase is the phase of a job of v1alpha1, fioravanzo.org or mxnet.mlkube.io."),
    ] = None
    reason: Annotated[str | None, Meta(description="reason explains a failure or restart, beside phase.")] = None
    mx_replica_statuses: Annotated[
        dict[str, Any] | None,
        Meta(
            description="mxReplicaStatuses is replicaStatuses under its name in v1beta1.",
            extra_json_schema={"x-kubernetes-preserve-unknown-fields": True},
        ),
    ] = None
