"""kubeflow.org/v1beta1, kubeflow/mxnet-operator's: flat policies, `label`, and `status.mxReplicaStatuses`."""

from typing import Any, Final

import msgspec

from mxnet_operator.api.forms.flat_spec import flat_to_v1, label_conflicts
from mxnet_operator.api.forms.form import Form, Status
from mxnet_operator.api.forms.phases import counts_as_map
from mxnet_operator.api.kinds import MXJOB
from mxnet_operator.api.types import MXJobStatus


def _words(status: MXJobStatus, _pods_left: bool) -> dict[str, Any]:
    """The counts under both names: the document's, and v1's for who reads any form."""
    counts = msgspec.to_builtins(status.replica_statuses)
    return {"mxReplicaStatuses": counts} if counts else {}


def _read(status: Status) -> Status:
    return {"replicaStatuses": status.get("mxReplicaStatuses") or {}, **counts_as_map(status)}


V1BETA1: Final = Form(
    "v1beta1", MXJOB, "kubeflow.org/v1beta1", flat_to_v1, label_conflicts, _words, _read, has_runtime_id=True
)
