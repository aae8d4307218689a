"""The specs of the older forms as msgspec types, from which their CRDs' schemas are made (`api/schemas.py`).

A form's schema also declares its neighbours' fields, which are easily mixed up with its own: a field that is declared
reaches the rule that refuses it, where an unknown one would be dropped in silence.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mxnet_operator.api.types import (
    ApiStruct,
    CleanPodPolicy,
    Int32,
    Int64,
    ObjectName,
    Replicas,
    RestartPolicy,
    SchedulingPolicy,
    Template,
)

MAX_ENTRIES = 6
"""Entries of a list of replicas: there are three types."""

Port = Annotated[int, Meta(ge=1, le=65535, extra_json_schema={"format": "int32"})]
ListType = Literal["", "SCHEDULER", "SERVER", "WORKER"]
Text = Annotated[str, Meta(max_length=253)]
Opaque = Annotated[dict[str, Any], Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})]


class Chief(ApiStruct, frozen=True, kw_only=True):
    """The replica whose end is the job's."""

    replica_name: Annotated[ListType | None, Meta(description="SCHEDULER (default) or WORKER.")] = None
    replica_index: Annotated[Int32 | None, Meta(description="Default 0.")] = None


class TerminationPolicy(ApiStruct, frozen=True, kw_only=True):
    """When a job is over."""

    chief: Chief | None = None


class ListReplica(ApiStruct, frozen=True, kw_only=True):
    """One entry of a list of replicas."""

    mx_replica_type: Annotated[
        ListType | None, Meta(description="SCHEDULER, SERVER or WORKER; the default is the form's.")
    ] = None
    replicas: Annotated[Replicas | None, Meta(description="How many pods of this type. Default 1.")] = None
    ps_root_port: Annotated[Port | None, Meta(description="The port of the parameter server. Default 9091.")] = (
        msgspec.field(default=None, name="PsRootPort")
    )
    mx_port: Annotated[Port | None, Meta(description="fioravanzo.org's name of PsRootPort. Default 9000.")] = None
    template: Template


class ListSpec(ApiStruct, frozen=True, kw_only=True):
    """What a user asks for, in the list forms of kubeflow.org/v1alpha1, fioravanzo.org and mxnet.mlkube.io."""

    job_mode: Annotated[Text | None, Meta(description="dist or local.")] = None
    replica_specs: Annotated[
        tuple[ListReplica, ...], Meta(description="The replicas, one entry for each type.", max_length=MAX_ENTRIES)
    ]
    runtime_id: Annotated[Text | None, Meta(description="Was set by the operator; status.RuntimeId has it now.")] = (
        msgspec.field(default=None, name="RuntimeId")
    )
    mx_image: Annotated[Text | None, Meta(description="Had and has no effect.")] = None
    termination_policy: TerminationPolicy | None = None
    cleanup_pod_policy: Annotated[
        CleanPodPolicy | None,
        Meta(description="Which pods of a finished job are deleted; default All."),
    ] = None
    scheduler_name: Annotated[ObjectName | None, Meta(description="The scheduler of all pods.")] = None


class FlatSpec(ApiStruct, frozen=True, kw_only=True):
    """The fields of v1's runPolicy, where v1beta1 and mxnet-operator's own v1 had them: straight under spec."""

    clean_pod_policy: Annotated[CleanPodPolicy | None, Meta(description="v1beta1. Default All.")] = None
    ttl_seconds_after_finished: Annotated[Int32 | None, Meta(description="v1beta1.")] = None
    active_deadline_seconds: Annotated[Int64 | None, Meta(description="mxnet-operator's own v1.")] = None
    backoff_limit: Annotated[Int32 | None, Meta(description="mxnet-operator's own v1.")] = None
    scheduling_policy: SchedulingPolicy | None = None
    suspend: Annotated[bool | None, Meta(description="mxnet-operator's own v1.")] = None


class LabelledReplica(ApiStruct, frozen=True, kw_only=True):
    """What a replica of v1beta1 has besides v1's fields."""

    label: Annotated[Text | None, Meta(description="The key of a TVM RPC server (v1beta1).")] = None


class NetReplica(ApiStruct, frozen=True, kw_only=True):
    """The replicas of one type of an MXNetJob."""

    replicas: Annotated[Replicas | None, Meta(description="How many pods of this type. Default 1.")] = None
    restart_policy: Annotated[RestartPolicy | None, Meta(description="Default Never.")] = None
    template: Template


class NetSpec(ApiStruct, frozen=True, kw_only=True):
    """What a user asks for in an MXNetJob."""

    replica_specs: Annotated[
        dict[str, NetReplica],
        Meta(description="The replicas by type: scheduler, server and worker.", max_length=MAX_ENTRIES),
    ]


class MapSpec(ApiStruct, frozen=True, kw_only=True):
    """Fields beside a map of replicas that no list form has."""

    mx_replica_specs: Opaque | None = None
    run_policy: Opaque | None = None
    success_policy: Text | None = None


class MapReplica(ApiStruct, frozen=True, kw_only=True):
    """Fields of a replica in a map that none in a list has."""

    restart_policy: Text | None = None
    label: Text | None = None


class OlderStatus(ApiStruct, frozen=True, kw_only=True):
    """What the status has besides v1's fields, in the words of an older form."""

    form: Annotated[str | None, Meta(description="The form that the job was written in; none: v1.")] = None
    runtime_id: Annotated[
        str | None, Meta(description="The first four characters of the uid; the pods have it as a label.")
    ] = msgspec.field(default=None, name="RuntimeId")
    phase: Annotated[
        Literal["", "Creating", "Running", "CleanUp", "Failed", "Done"] | None,
        Meta(description="The phase of a list form's job."),
    ] = None
    reason: Annotated[str | None, Meta(description="Why a list form's job failed or starts again.")] = None
    mx_replica_statuses: Annotated[
        dict[str, Any] | None,
        Meta(
            description="replicaStatuses under v1beta1's name.",
            extra_json_schema={"x-kubernetes-preserve-unknown-fields": True},
        ),
    ] = None


FLAT_FIELDS = tuple(field.encode_name for field in msgspec.structs.fields(FlatSpec))
"""Under spec where v1 has them under runPolicy."""
BETA_FIELDS = ("cleanPodPolicy", "ttlSecondsAfterFinished")
"""Those of them that v1beta1 had."""
