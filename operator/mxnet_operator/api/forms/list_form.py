"""kubeflow.org/v1alpha1: the list form of jzp1025/mx-operator and of the first kubeflow/mxnet-operator."""

from typing import Final

from mxnet_operator.api.forms.form import Form
from mxnet_operator.api.forms.list_spec import ListDefaults, list_conflicts, list_to_v1
from mxnet_operator.api.forms.phases import list_words, read_list_status
from mxnet_operator.api.kinds import MXJOB
from mxnet_operator.api.older.lists import DEFAULT_TYPE

_DEFAULTS: Final = ListDefaults(
    entry_type=DEFAULT_TYPE[MXJOB.group], port_field="PsRootPort", port=9091, clean_pod_policy="All"
)
LIST_FORM: Final = Form(
    "v1alpha1",
    MXJOB,
    "kubeflow.org/v1alpha1",
    list_to_v1(_DEFAULTS),
    list_conflicts(_DEFAULTS),
    list_words("mx_replica_type"),
    read_list_status,
    has_runtime_id=True,
    has_phases=True,
)
