"""Types of v1beta1 and of mxnet-operator's own v1 for fields that v1 has elsewhere."""

from typing import Annotated

import msgspec
from msgspec import Meta

from mxnet_operator.api.formats.fields import Text
from mxnet_operator.api.types import ApiStruct, CleanPodPolicy, Int32, Int64, SchedulingPolicy


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
