"""Format kubeflow.org/v1beta1 of kubeflow/mxnet-operator: flat policies, `label`, and `status.mxReplicaStatuses`."""

from typing import Any, Final

import msgspec

from mxnet_operator.api.formats.flat_spec import flat_to_v1, label_conflicts
from mxnet_operator.api.formats.format import Format, Status
from mxnet_operator.api.formats.mxjob import DEFINITION
from mxnet_operator.api.formats.phases import counts_as_map
from mxnet_operator.api.types import MXJobStatus


def _words(status: MXJobStatus, _pods_left: bool) -> dict[str, Any]:
    """Return the counts under both names: the document's, and v1's for clients that read any format."""
    counts = msgspec.to_builtins(status.replica_statuses)
    return {"mxReplicaStatuses": counts} if counts else {}


def _read(status: Status) -> Status:
    return {"replicaStatuses": status.get("mxReplicaStatuses") or {}, **counts_as_map(status)}


V1BETA1: Final = Format(
    "v1beta1", DEFINITION, "kubeflow.org/v1beta1", flat_to_v1, label_conflicts, _words, _read, has_runtime_id=True
)
