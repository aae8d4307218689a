"""Definition of mxjobs.kubeflow.org, which four formats share: v1, flat v1, v1beta1, the list of v1alpha1."""

from typing import Final

from mxnet_operator.api import names
from mxnet_operator.api.formats.definition import Definition
from mxnet_operator.api.formats.flat_types import FlatSpec, LabelledReplica
from mxnet_operator.api.formats.list_rules import chief_rules, has_a_scheduler, list_rules
from mxnet_operator.api.formats.list_types import ListSpec
from mxnet_operator.api.formats.lists import WORKER
from mxnet_operator.api.formats.map_types import MapReplica
from mxnet_operator.api.formats.mixing_rules import rules_between_formats
from mxnet_operator.api.formats.transition_rules import COUNTS_STAY, FINISHED_STAYS, counts_of_list_stay
from mxnet_operator.api.kind import Kind
from mxnet_operator.api.rules import RULES

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
    refused_of_replica=MapReplica,
    rules=(*RULES, *list_rules(WORKER), has_a_scheduler(WORKER), *chief_rules(WORKER), *rules_between_formats()),
    transitions=(COUNTS_STAY, counts_of_list_stay(WORKER), FINISHED_STAYS),
)
