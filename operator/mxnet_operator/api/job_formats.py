"""Readers and writers of every format in which a job can be written, to and from v1.

`to_v1` is all that the rest of the system needs: it plans and builds v1 jobs only. `status_to_wire` writes a status in
the fields of the format that its user chose. A format is decided by group, kind and shape, since the objects of
mxjobs.kubeflow.org come back as v1 whatever version they were created as, and then recorded in `status.form`.
"""

import difflib
from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.formats import FORMATS
from mxnet_operator.api.formats.format import Format, Note, Spec
from mxnet_operator.api.formats.mxjob import FLAT_V1, V1, V1ALPHA1, V1BETA1
from mxnet_operator.api.formats.older_types import BETA_FIELDS, FLAT_FIELDS
from mxnet_operator.api.kinds import ALL, MXJOB, kind_of
from mxnet_operator.api.queue_labels import queue_label_errors
from mxnet_operator.api.structural import FieldError
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.api.validation import missing_fields, template_errors, validate, without_nulls


def format_of(manifest: dict[str, Any]) -> Format:
    """Return the format of a manifest: the one recorded in its status, else by its group, kind and shape.

    A recorded format is ignored once the spec no longer has its shape (its user rewrote it). What is malformed says
    nothing of the format.
    """
    kind = kind_of(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    if kind is not None and kind != MXJOB:
        return next(job_format for job_format in FORMATS if job_format.kind == kind)
    spec, status = (_mapping(manifest.get(part)) for part in ("spec", "status"))
    if "replicaSpecs" in spec:
        return V1ALPHA1
    if "runPolicy" in spec:
        return V1
    recorded = status.get("form")
    for job_format in (V1BETA1, FLAT_V1):
        if recorded == job_format.name:
            return job_format
    if any(field in spec for field in FLAT_FIELDS if field not in BETA_FIELDS):
        return FLAT_V1
    labelled = any("label" in _mapping(replica) for replica in _mapping(spec.get("mxReplicaSpecs")).values())
    if labelled or any(field in spec for field in BETA_FIELDS) or manifest.get("apiVersion") == _BETA:
        return V1BETA1
    return V1


def errors(manifest: Any, *, is_stored: bool = True) -> list[FieldError]:
    """Return every error in a manifest, in the terms of its own format; empty if it means a job that can run.

    A job that isn't stored yet is checked by the rules for submission, too.

    The API server rejects the same in the same words, as far as its schema and rules can express it; it reports errors
    deeper in a pod template when the pods are created.
    """
    # A status is not the user's to get right, and may be one that a form's first operator wrote.
    asked = (
        {name: value for name, value in manifest.items() if name != "status"}
        if isinstance(manifest, dict)
        else manifest
    )
    if found := validate(asked, is_stored=is_stored):
        return [*(error for error in missing_fields(asked) if error not in found), *found]
    return template_errors(asked) or list(format_of(asked).conflicts(without_nulls(asked)["spec"]))


def submission_errors(manifest: Any) -> list[FieldError]:
    """Return `errors`, or those of labels that only other controllers read: what is rejected before a job is created.

    An existing job with such a label runs. Of a manifest that is no job at all, nothing but that is reported.
    """
    other = _other_kind(manifest)
    return [other] if other else errors(manifest, is_stored=False) or queue_label_errors(manifest)


def _other_kind(manifest: Any) -> FieldError | None:
    """Return the error of a kind that is none of its group's, or of another API altogether; None for a job's."""
    kind, version = (manifest.get(field) if isinstance(manifest, dict) else None for field in ("kind", "apiVersion"))
    if not isinstance(kind, str) or not isinstance(version, str):
        return None
    of_group = {each.kind.lower(): each.kind for each in ALL if each.group == version.partition("/")[0]}
    if kind in of_group.values() or (not of_group and kind.lower() in {each.kind.lower() for each in ALL}):
        return None  # the apiVersion is what is wrong, if anything is
    meant = difflib.get_close_matches(kind.lower(), of_group, n=1, cutoff=0.8)
    instead = f"did you mean {of_group[meant[0]]}?" if meant else f"this is a {kind}; expected an {names.KIND}"
    return FieldError("kind", "FieldValueNotSupported", f'Unsupported value: "{kind}": {instead}')


def to_v1(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the v1 MXJob that a valid manifest means: its own format's defaults written out, the same metadata.

    apiVersion and kind become v1's: children of the job are named by its own (`format_of(manifest).kind`).
    A status is turned back by `status_from_wire`. A v1 job is returned as it is.
    """
    job_format = format_of(manifest)
    if job_format is V1:
        return manifest
    manifest = without_nulls(manifest)
    built = {
        **manifest,
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "spec": spec_to_v1(manifest, lambda *_: None),
    }
    if "status" in manifest:
        built["status"] = msgspec.to_builtins(status_from_wire(job_format, manifest["status"] or {}))
    return built


def spec_to_v1(manifest: dict[str, Any], note: Note) -> Spec:
    """Return the spec of the v1 job; `note` is called for each field of it that differs from what was written."""
    return format_of(manifest).spec_to_v1(without_nulls(manifest)["spec"], note)


def status_to_wire(
    job_format: Format, job: dict[str, Any] | MXJob, status: MXJobStatus, *, pods_left: bool = False
) -> dict[str, Any]:
    """Return a status as the API server stores it: v1's, the format's name, and the same in the format's own fields.

    `pods_left`: whether pods of a finished job are still to be deleted (phase CleanUp). A format with phases
    (`job_format.has_phases`) needs one more write when the last of them is deleted: its phase is then Done or Failed.
    """
    built: dict[str, Any] = msgspec.to_builtins(status)
    if job_format is V1:
        return built
    uid = job.metadata.uid if isinstance(job, MXJob) else (job.get("metadata") or {}).get("uid", "")
    runtime_id = {"RuntimeId": names.runtime_id(uid)} if job_format.has_runtime_id else {}
    return {**built, "form": job_format.name, **runtime_id, **job_format.words(status, pods_left)}


def status_from_wire(job_format: Format, status: dict[str, Any]) -> MXJobStatus:
    """Return the status that was stored by `status_to_wire`: its inverse.

    Raises:
        msgspec.ValidationError: it is not one that we write.
    """
    return msgspec.convert(job_format.read(status), MXJobStatus)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_BETA: Final = f"{names.GROUP}/v1beta1"
