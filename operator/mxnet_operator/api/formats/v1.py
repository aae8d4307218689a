"""Format kubeflow.org/v1 of training-operator 1.8.1, today's, with the policies under `spec.runPolicy`."""

from typing import Final

from mxnet_operator.api.formats.format import Format, Note, Spec, no_conflicts, no_words
from mxnet_operator.api.formats.mxjob import DEFINITION
from mxnet_operator.api.formats.phases import counts_as_map


def _as_it_is(spec: Spec, _note: Note) -> Spec:
    return spec


V1: Final = Format("v1", DEFINITION, "kubeflow.org/v1", _as_it_is, no_conflicts, no_words, counts_as_map)
