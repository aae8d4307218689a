"""Format kubeflow.org/v1alpha1: the replica list of jzp1025/mx-operator and of the first kubeflow/mxnet-operator."""

from typing import Final

from mxnet_operator.api.formats.format import Format
from mxnet_operator.api.formats.list_format import list_format
from mxnet_operator.api.formats.list_spec import ListDefaults
from mxnet_operator.api.formats.lists import WORKER
from mxnet_operator.api.formats.mxjob import DEFINITION

_DEFAULTS: Final = ListDefaults(entry_type=WORKER, port_field="PsRootPort", port=9091, clean_pod_policy="All")
V1ALPHA1: Final[Format] = list_format("v1alpha1", DEFINITION, "kubeflow.org/v1alpha1", _DEFAULTS)
