"""mxnet-operator's own kubeflow.org/v1: all that training-operator put under runPolicy stood straight under `spec`."""

from typing import Final

from mxnet_operator.api.forms.flat_spec import flat_to_v1, label_conflicts
from mxnet_operator.api.forms.form import Form, no_words
from mxnet_operator.api.forms.phases import counts_as_map
from mxnet_operator.api.kinds import MXJOB

FLAT_V1: Final = Form(
    "flat-v1", MXJOB, "kubeflow.org/v1 as mxnet-operator had it", flat_to_v1, label_conflicts, no_words, counts_as_map
)
