"""mxnet.mlkube.io/v1beta1, deepinsight/mxnet-operator's MxJob: a list whose jobMode, local or dist, is checked.

Its document's `kubectl get job` shows the finished processes an hour later: nothing is deleted. It has no table of exit
codes; the code that it came with has that of fioravanzo.org.
"""

from typing import Final

from mxnet_operator.api.forms.fioravanzo import RETRYABLE
from mxnet_operator.api.forms.form import Form
from mxnet_operator.api.forms.list_spec import ListDefaults, list_conflicts, list_to_v1
from mxnet_operator.api.forms.phases import list_words, read_list_status
from mxnet_operator.api.kinds import MLKUBE as KIND
from mxnet_operator.api.older.lists import DEFAULT_TYPE

_DEFAULTS: Final = ListDefaults(
    entry_type=DEFAULT_TYPE[KIND.group],
    port_field="PsRootPort",
    port=9091,
    clean_pod_policy="None",
    retryable=RETRYABLE,
)
MLKUBE: Final = Form(
    "mlkube",
    KIND,
    KIND.api_version,
    list_to_v1(_DEFAULTS),
    list_conflicts(_DEFAULTS),
    list_words("Mx_replica_type"),
    read_list_status,
    has_runtime_id=True,
    has_phases=True,
)
