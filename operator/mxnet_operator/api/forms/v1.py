"""The form of today: kubeflow.org/v1 with the policies under `spec.runPolicy`, training-operator 1.8.1's."""

from typing import Final

from mxnet_operator.api.forms.form import Form, Manifest, Spec
from mxnet_operator.api.kinds import MXJOB
from mxnet_operator.api.structural import FieldError


def _errors(manifest: Manifest) -> list[FieldError]:
    return []


def _spec_to_v1(spec: Spec) -> Spec:
    return spec


V1: Final = Form("v1", MXJOB, errors=_errors, has_phases=False, spec_to_v1=_spec_to_v1)
