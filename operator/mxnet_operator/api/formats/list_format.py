"""Format kubeflow.org/v1alpha1: the replica list of jzp1025/mx-operator and of the first kubeflow/mxnet-operator."""

from typing import Final

from mxnet_operator.api.formats.format import Format
from mxnet_operator.api.formats.list_spec import ListDefaults, list_conflicts, list_to_v1
from mxnet_operator.api.formats.lists import WORKER
from mxnet_operator.api.formats.mxjob import DEFINITION
from mxnet_operator.api.formats.phases import list_words, read_list_status

_DEFAULTS: Final = ListDefaults(entry_type=WORKER, port_field="PsRootPort", port=9091, clean_pod_policy="All")
LIST_FORMAT: Final = Format(
    "v1alpha1",
    DEFINITION,
    "kubeflow.org/v1alpha1",
    list_to_v1(_DEFAULTS),
    list_conflicts(_DEFAULTS),
    list_words("mx_replica_type"),
    read_list_status,
    has_runtime_id=True,
    has_phases=True,
)
