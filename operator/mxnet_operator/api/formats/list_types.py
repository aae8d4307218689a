"""Types of a list of replicas, as kubeflow.org/v1alpha1, fioravanzo.org and mxnet.mlkube.io have it."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from mxnet_operator.api.formats.fields import MAX_ENTRIES, Text
from mxnet_operator.api.types import (
    ApiStruct,
    CleanPodPolicy,
    Int32,
    ObjectName,
    Replicas,
    Template,
)

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
    replicas: Annotated[
        Replicas | None, Meta(description="replicas is the number of pods of this type. Defaults to 1.")
    ] = None
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
