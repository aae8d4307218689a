"""Specs with the run policies directly in `spec`: v1beta1's, and those of mxnet-operator's own v1."""

from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.formats.format import Note, Spec
from mxnet_operator.api.formats.older_types import FLAT_FIELDS
from mxnet_operator.api.structural import FieldError, join

CLEAN_POD_POLICY: Final = "All"
"""Default cleanPodPolicy of both, and of training-operator up to 1.5."""


def flat_to_v1(spec: Spec, note: Note) -> Spec:
    """Return the v1 spec: the policies move under runPolicy, labels become annotations."""
    policy = {field: spec[field] for field in FLAT_FIELDS if field in spec}
    for field in policy:
        note(("spec", "runPolicy", field), f"was spec.{field}")
    if not policy.get("cleanPodPolicy"):
        policy = {"cleanPodPolicy": CLEAN_POD_POLICY, **{k: v for k, v in policy.items() if k != "cleanPodPolicy"}}
        note(("spec", "runPolicy", "cleanPodPolicy"), f"was the format's default, {CLEAN_POD_POLICY}; v1's is None")
    kept = {field: value for field, value in spec.items() if field not in (*FLAT_FIELDS, "mxReplicaSpecs")}
    specs = {
        replica_type: _replica(replica, ("spec", "mxReplicaSpecs", replica_type), note)
        for replica_type, replica in spec["mxReplicaSpecs"].items()
    }
    return {**kept, "runPolicy": policy, "mxReplicaSpecs": specs}


def label_conflicts(spec: Spec) -> Iterator[FieldError]:
    """Yield an error for each replica whose label contradicts its annotation."""
    for replica_type, replica in spec["mxReplicaSpecs"].items():
        label, annotation = replica.get("label"), _annotations(replica["template"]).get(names.TUNER_KEY_ANNOTATION)
        if label and annotation is not None and label != annotation:
            path = join(join("spec.mxReplicaSpecs", replica_type), "label")
            why = (
                f'Invalid value: "{label}": ambiguous: the template has the annotation {names.TUNER_KEY_ANNOTATION}: '
                f'"{annotation}"; give one of them'
            )
            yield FieldError(path, "FieldValueInvalid", why)


def _replica(replica: dict[str, Any], path: tuple[str, ...], note: Note) -> dict[str, Any]:
    if "label" not in replica:
        return replica
    kept = {field: value for field, value in replica.items() if field != "label"}
    label = replica["label"]
    if not label:
        return kept
    metadata = replica["template"].get("metadata") or {}
    annotations = {**_annotations(replica["template"]), names.TUNER_KEY_ANNOTATION: label}
    note((*path, "template", "metadata", "annotations", names.TUNER_KEY_ANNOTATION), "was label")
    return {**kept, "template": {**replica["template"], "metadata": {**metadata, "annotations": annotations}}}


def _annotations(template: dict[str, Any]) -> dict[str, Any]:
    return (template.get("metadata") or {}).get("annotations") or {}
