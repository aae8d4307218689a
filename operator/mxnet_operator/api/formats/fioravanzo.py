"""Format fioravanzo.org/v1alpha1 of StefanoFioravanzo/mx-operator: `mxPort`, default type SCHEDULER, own exit codes.

It had no cleanup policy; nothing is deleted, since the document promises no deletion and logs are worth keeping.
"""

from typing import Final

from mxnet_operator.api.formats.format import Definition, Format
from mxnet_operator.api.formats.list_rules import chief_rules, has_a_scheduler, list_rules, only_lists
from mxnet_operator.api.formats.list_spec import ListDefaults, list_format
from mxnet_operator.api.formats.lists import SCHEDULER
from mxnet_operator.api.formats.older_types import FlatSpec, ListSpec, MapSpec
from mxnet_operator.api.formats.transition_rules import counts_of_list_stay
from mxnet_operator.api.kind import Kind
from mxnet_operator.api.rules import NAME_IS_DNS_LABEL

KIND: Final = Kind("fioravanzo.org", "MXJob", "mxjobs", "mxjob", ("v1alpha1",), "v1alpha1", is_legacy=True)
"""Kind of StefanoFioravanzo/mx-operator (examples/seeds/003-fioravanzo)."""

RETRYABLE: Final = tuple(range(128, 256))
"""Retryable exit codes of its documentation: "1-127 = permanent error, 128-255 = retryable error"."""
_DEFAULTS: Final = ListDefaults(
    entry_type=SCHEDULER,
    port_field="mxPort",
    port=9000,
    clean_pod_policy="None",
    retryable=RETRYABLE,
)
_DEFINITION: Final = Definition(
    kind=KIND,
    spec=ListSpec,
    refused=(FlatSpec, MapSpec),
    rules=(
        NAME_IS_DNS_LABEL,
        *list_rules(SCHEDULER),
        has_a_scheduler(SCHEDULER),
        *chief_rules(SCHEDULER),
        *only_lists(KIND.group, port="mxPort", not_port="PsRootPort", without=("jobMode", "cleanupPodPolicy")),
    ),
    transitions=(counts_of_list_stay(SCHEDULER),),
)
FIORAVANZO: Final[Format] = list_format("fioravanzo", _DEFINITION, _DEFAULTS)
