"""The forms in which a job can be written, and the v1 job that each of them means.

`to_v1` is all that the rest of the system needs: it plans and builds v1 jobs only. `status_to_wire` says what became of
one in the words of the form that its user chose. A form is decided by group, kind and shape, since the objects of
mxjobs.kubeflow.org come back as v1 whatever version they were created as, and then recorded in `status.form`.
"""

from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.forms.fioravanzo import FIORAVANZO
from mxnet_operator.api.forms.flat_v1 import FLAT_V1
from mxnet_operator.api.forms.form import Form, Note, Path, Spec
from mxnet_operator.api.forms.list_form import LIST_FORM
from mxnet_operator.api.forms.mlkube import MLKUBE
from mxnet_operator.api.forms.mxnetjob import MXNETJOB
from mxnet_operator.api.forms.v1 import V1
from mxnet_operator.api.forms.v1beta1 import V1BETA1
from mxnet_operator.api.kinds import MXJOB, kind_of
from mxnet_operator.api.older.types import BETA_FIELDS, FLAT_FIELDS
from mxnet_operator.api.structural import FieldError
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.api.validation import missing_fields, template_errors, validate, without_nulls

__all__ = ["FORMS", "Form", "errors", "form_of", "spec_to_v1", "status_from_wire", "status_to_wire", "to_v1"]

FORMS: Final = (V1, FLAT_V1, V1BETA1, LIST_FORM, FIORAVANZO, MLKUBE, MXNETJOB)


def form_of(manifest: dict[str, Any]) -> Form:
    """The form that a manifest is written in: the one recorded in its status, else by its group, kind and shape.

    A recorded form that the spec no longer has the shape of (its user rewrote it) is passed over.
    """
    kind = kind_of(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    if kind is not None and kind != MXJOB:
        return next(form for form in FORMS if form.kind == kind)
    spec = manifest.get("spec") or {}
    if "replicaSpecs" in spec:
        return LIST_FORM
    if "runPolicy" in spec:
        return V1
    recorded = (manifest.get("status") or {}).get("form")
    for form in (V1BETA1, FLAT_V1):
        if recorded == form.name:
            return form
    if any(field in spec for field in FLAT_FIELDS if field not in BETA_FIELDS):
        return FLAT_V1
    labelled = any("label" in replica for replica in (spec.get("mxReplicaSpecs") or {}).values())
    if labelled or any(field in spec for field in BETA_FIELDS) or manifest.get("apiVersion") == _BETA:
        return V1BETA1
    return V1


def errors(manifest: Any) -> list[FieldError]:
    """Every mistake in a manifest, in the terms of its own form; empty if it means a job that can run.

    The API server refuses the same and in the same words, as far as its schema and rules can say it; what is wrong
    deeper in a pod template it says of the pods.
    """
    # A status is not the user's to get right, and may be one that a form's first operator wrote.
    asked = (
        {name: value for name, value in manifest.items() if name != "status"}
        if isinstance(manifest, dict)
        else manifest
    )
    if found := validate(asked):
        return [*(error for error in missing_fields(asked) if error not in found), *found]
    return template_errors(asked) or list(form_of(asked).conflicts(without_nulls(asked)["spec"]))


def to_v1(manifest: dict[str, Any]) -> dict[str, Any]:
    """The v1 MXJob that a manifest without errors means: its own form's defaults written out, the same metadata.

    apiVersion and kind become v1's: whoever makes children of the job names it by its own (`form_of(manifest).kind`).
    A status is turned back by `status_from_wire`. A v1 job is returned as it is.
    """
    form = form_of(manifest)
    if form is V1:
        return manifest
    manifest = without_nulls(manifest)
    built = {
        **manifest,
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "spec": spec_to_v1(manifest, _unheard),
    }
    if "status" in manifest:
        built["status"] = msgspec.to_builtins(status_from_wire(form, manifest["status"] or {}))
    return built


def spec_to_v1(manifest: dict[str, Any], note: Note) -> Spec:
    """The spec of the v1 job; `note` hears of each field of it that is not what was written, and why."""
    return form_of(manifest).spec_to_v1(without_nulls(manifest)["spec"], note)


def status_to_wire(
    form: Form, job: dict[str, Any] | MXJob, status: MXJobStatus, *, pods_left: bool = False
) -> dict[str, Any]:
    """A status as the API server stores it: v1's, the form's name, and the same again in the form's own words.

    `pods_left`: whether pods of a finished job are still to be deleted (phase CleanUp). A form with phases
    (`form.has_phases`) wants one more write when the last of them is gone: its phase is then Done or Failed.
    """
    built: dict[str, Any] = msgspec.to_builtins(status)
    if form is V1:
        return built
    uid = job.metadata.uid if isinstance(job, MXJob) else (job.get("metadata") or {}).get("uid", "")
    runtime_id = {"RuntimeId": names.runtime_id(uid)} if form.has_runtime_id else {}
    return {**built, "form": form.name, **runtime_id, **form.words(status, pods_left)}


def status_from_wire(form: Form, status: dict[str, Any]) -> MXJobStatus:
    """The status that was stored by `status_to_wire`: its inverse.

    Raises:
        msgspec.ValidationError: it is not one that we write.
    """
    return msgspec.convert(form.read(status), MXJobStatus)


_BETA: Final = f"{names.GROUP}/v1beta1"


def _unheard(_path: Path, _why: str) -> None: ...
