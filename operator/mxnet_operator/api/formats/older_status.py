"""Status fields of older formats that v1 lacks."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from mxnet_operator.api.types import ApiStruct


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
