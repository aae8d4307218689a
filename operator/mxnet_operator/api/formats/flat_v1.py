"""Format kubeflow.org/v1 of mxnet-operator: the fields of training-operator's runPolicy are directly in `spec`."""

from typing import Final

from mxnet_operator.api.formats.flat_spec import flat_to_v1, label_conflicts
from mxnet_operator.api.formats.format import Format, no_words
from mxnet_operator.api.formats.mxjob import DEFINITION
from mxnet_operator.api.formats.phases import counts_as_map

FLAT_V1: Final = Format(
    "flat-v1",
    DEFINITION,
    "kubeflow.org/v1 as mxnet-operator had it",
    flat_to_v1,
    label_conflicts,
    no_words,
    counts_as_map,
)
