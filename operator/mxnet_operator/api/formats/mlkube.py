"""Format mxnet.mlkube.io/v1beta1 of deepinsight/mxnet-operator: a list whose jobMode, local or dist, is checked.

Its document's `kubectl get job` shows the finished processes an hour later: nothing is deleted. It has no table of exit
codes; the code that it came with has that of fioravanzo.org.
"""

from typing import Final

from mxnet_operator.api.formats.fioravanzo import RETRYABLE
from mxnet_operator.api.formats.format import Definition, Format
from mxnet_operator.api.formats.list_rules import list_rules, mode_rules, only_lists
from mxnet_operator.api.formats.list_spec import ListDefaults, list_format
from mxnet_operator.api.formats.lists import WORKER
from mxnet_operator.api.formats.older_types import FlatSpec, ListSpec, MapSpec
from mxnet_operator.api.formats.transition_rules import counts_of_list_stay
from mxnet_operator.api.kind import Kind
from mxnet_operator.api.rules import NAME_IS_DNS_LABEL

KIND: Final = Kind("mxnet.mlkube.io", "MxJob", "mxjobs", "mxjob", ("v1beta1",), "v1beta1", is_legacy=True)
"""Kind of deepinsight/mxnet-operator (examples/seeds/002-deepinsight)."""

_DEFAULTS: Final = ListDefaults(
    entry_type=WORKER,
    port_field="PsRootPort",
    port=9091,
    clean_pod_policy="None",
    retryable=RETRYABLE,
)
_DEFINITION: Final = Definition(
    kind=KIND,
    spec=ListSpec,
    required=("jobMode", "replicaSpecs"),
    refused=(FlatSpec, MapSpec),
    rules=(
        NAME_IS_DNS_LABEL,
        *list_rules(WORKER),
        *mode_rules(WORKER),
        *only_lists(
            KIND.group,
            port="PsRootPort",
            not_port="mxPort",
            without=("mxImage", "terminationPolicy", "cleanupPodPolicy", "schedulerName"),
        ),
    ),
    transitions=(counts_of_list_stay(WORKER),),
)
MLKUBE: Final[Format] = list_format("mlkube", _DEFINITION, _DEFAULTS, type_field="Mx_replica_type")
