"""Formats of mxjobs.kubeflow.org, which share one definition: v1, flat v1, v1beta1, and the list of v1alpha1."""

from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.formats.flat_spec import flat_to_v1, label_conflicts
from mxnet_operator.api.formats.format import Definition, Format, Status
from mxnet_operator.api.formats.list_rules import chief_rules, has_a_scheduler, list_rules
from mxnet_operator.api.formats.list_spec import ListDefaults, list_format
from mxnet_operator.api.formats.lists import WORKER
from mxnet_operator.api.formats.mixing_rules import rules_between_formats
from mxnet_operator.api.formats.older_types import FlatSpec, LabelledReplica, ListSpec
from mxnet_operator.api.formats.phases import counts_as_map
from mxnet_operator.api.formats.transition_rules import COUNTS_STAY, FINISHED_STAYS, counts_of_list_stay
from mxnet_operator.api.kind import Kind
from mxnet_operator.api.rules import RULES
from mxnet_operator.api.types import MXJobStatus

MXJOB: Final = Kind(
    names.GROUP,
    names.KIND,
    names.PLURAL,
    names.SINGULAR,
    ("v1", "v1beta1", "v1alpha1"),
    "v1",
    (names.SHORT_NAME,),
)
"""Kind of training-operator, of kubeflow/mxnet-operator (examples/seeds/001-kubeflow-mxnet-operator), and of
jzp1025/mx-operator (examples/seeds/004-jzp1025)."""
DEFINITION: Final = Definition(
    kind=MXJOB,
    required=(),
    also=(ListSpec, FlatSpec),
    also_of_replica=LabelledReplica,
    rules=(*RULES, *list_rules(WORKER), has_a_scheduler(WORKER), *chief_rules(WORKER), *rules_between_formats()),
    transitions=(COUNTS_STAY, counts_of_list_stay(WORKER), FINISHED_STAYS),
)


V1: Final = Format("v1", DEFINITION, lambda spec, _: spec, counts_as_map)
"""Format of training-operator 1.8.1, today's, with the policies under `spec.runPolicy`."""
FLAT_V1: Final = Format("flat-v1", DEFINITION, flat_to_v1, counts_as_map, conflicts=label_conflicts)
"""Format of mxnet-operator: the fields of training-operator's runPolicy are directly in `spec`."""


def _words(status: MXJobStatus, _pods_left: bool) -> dict[str, Any]:
    """Return the counts under both names: the document's, and v1's for clients that read any format."""
    counts = msgspec.to_builtins(status.replica_statuses)
    return {"mxReplicaStatuses": counts} if counts else {}


def _read(status: Status) -> Status:
    return {"replicaStatuses": status.get("mxReplicaStatuses") or {}, **counts_as_map(status)}


V1BETA1: Final = Format("v1beta1", DEFINITION, flat_to_v1, _read, _words, label_conflicts, has_runtime_id=True)
"""Format of kubeflow/mxnet-operator: flat policies, `label`, and `status.mxReplicaStatuses`."""

_DEFAULTS: Final = ListDefaults(entry_type=WORKER, port_field="PsRootPort", port=9091, clean_pod_policy="All")
V1ALPHA1: Final[Format] = list_format("v1alpha1", DEFINITION, _DEFAULTS)
"""Format of jzp1025/mx-operator and of the first kubeflow/mxnet-operator: a list of replicas."""
