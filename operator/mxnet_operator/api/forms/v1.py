"""The form of today: kubeflow.org/v1 with the policies under `spec.runPolicy`, training-operator 1.8.1's."""

from typing import Final

from mxnet_operator.api.forms.form import Form, Note, Spec, no_conflicts, no_words
from mxnet_operator.api.forms.phases import counts_as_map
from mxnet_operator.api.kinds import MXJOB


def _as_it_is(spec: Spec, _note: Note) -> Spec:
    return spec


V1: Final = Form("v1", MXJOB, "kubeflow.org/v1", _as_it_is, no_conflicts, no_words, counts_as_map)
