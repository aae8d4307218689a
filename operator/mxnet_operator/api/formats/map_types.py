"""Fields of a map of replicas, which formats without a map declare in order to reject them."""

from typing import Annotated, Any

from msgspec import Meta

from mxnet_operator.api.formats.fields import Text
from mxnet_operator.api.types import ApiStruct

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
