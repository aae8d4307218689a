"""The forms in which a job can be written, and the v1 job that each of them means.

`to_v1` is all that the rest of the system needs: it plans and builds v1 jobs only. `status_to_wire` says what became of
one in the words of the form that its user chose. A form is decided by group, kind and shape, since the objects of
mxjobs.kubeflow.org come back as v1 whatever version they were created as, and then recorded in `status.form`.
"""

from typing import Any

import msgspec

from mxnet_operator.api.forms.form import Form
from mxnet_operator.api.forms.v1 import V1
from mxnet_operator.api.structural import FieldError
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.api.validation import validate

__all__ = ["Form", "errors", "form_of", "status_from_wire", "status_to_wire", "to_v1"]


def form_of(manifest: dict[str, Any]) -> Form:
    """The form that a manifest is written in: the one recorded in its status, else by its group, kind and shape."""
    return V1


def errors(manifest: Any) -> list[FieldError]:
    """Every mistake in a manifest, in the terms of its own form; empty if it means a job that can run.

    The API server refuses the same and in the same words, as far as its schema and rules can say it.
    """
    return validate(manifest)


def to_v1(manifest: dict[str, Any]) -> dict[str, Any]:
    """The v1 MXJob that a manifest without errors means: its own form's defaults written out, the same metadata.

    apiVersion and kind become v1's: whoever makes children of the job names it by its own (`form_of(manifest).kind`).
    A status is turned back by `status_from_wire`. A v1 job is returned as it is.
    """
    return manifest


def status_to_wire(
    form: Form, job: dict[str, Any] | MXJob, status: MXJobStatus, *, pods_left: bool = False
) -> dict[str, Any]:
    """A status as the API server stores it: v1's, the form's name, and the same again in the form's own words.

    `pods_left`: whether pods of a finished job are still to be deleted (phase CleanUp). A form with phases
    (`form.has_phases`) wants one more write when the last of them is gone: its phase is then Done or Failed.
    """
    built: dict[str, Any] = msgspec.to_builtins(status)
    return built


def status_from_wire(form: Form, status: dict[str, Any]) -> MXJobStatus:
    """The status that was stored by `status_to_wire`: its inverse."""
    return msgspec.convert(status, MXJobStatus)
