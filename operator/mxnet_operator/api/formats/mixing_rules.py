"""Rules that keep the formats of mxjobs.kubeflow.org apart, which share one schema and are all stored as v1.

Two formats mixed in one manifest are ambiguous, and a field is rejected in a version that did not have it: nothing is
guessed or dropped.
"""

from collections.abc import Iterator
from typing import Final

from mxnet_operator.api import names
from mxnet_operator.api.formats.lists import DIST, LOCAL
from mxnet_operator.api.formats.older_types import BETA_FIELDS, FLAT_FIELDS
from mxnet_operator.api.formats.refusals import ENTRY, ONLY_V1, SPEC, no_field, none_beside
from mxnet_operator.api.rules import Rule

_BETA: Final = f"{names.GROUP}/v1beta1"
_ALPHA: Final = f"{names.GROUP}/v1alpha1"
_MODES: Final = ("MXTrain", "MXTune")
_SPELT_ALIKE: Final = {"cleanupPodPolicy": "write cleanPodPolicy, in v1 under runPolicy"}
_OF_A_LIST: Final = {
    "terminationPolicy": "write successPolicy: Scheduler or AllWorkers",
    "schedulerName": "write template.spec.schedulerName",
    "mxImage": "each container names its image",
    "RuntimeId": "status.RuntimeId has it",
}
"""Fields of the list format, and what is written beside a map in their place."""
_OF_A_MAP: Final = {
    "mxReplicaSpecs": "give all replicas in mxReplicaSpecs (v1), or all in replicaSpecs (v1alpha1)",
    **dict.fromkeys(("runPolicy", *FLAT_FIELDS), ONLY_V1),
    "cleanPodPolicy": "write cleanupPodPolicy",
    "successPolicy": "write terminationPolicy.chief",
}
_FLAT: Final = {field: f"write spec.runPolicy.{field}" for field in FLAT_FIELDS}


def rules_between_formats() -> Iterator[Rule]:
    yield from _what_is_required()
    yield none_beside("mxReplicaSpecs", _SPELT_ALIKE, ("v1", "v1beta1"))
    yield none_beside("mxReplicaSpecs", _OF_A_LIST, ("v1", "v1beta1"), served=False)
    yield none_beside("replicaSpecs", _OF_A_MAP, ("v1", "v1alpha1"), served=False)
    # v1beta1's default may have filled in cleanPodPolicy: there, the runPolicy is what is wrong.
    yield none_beside("runPolicy", _FLAT, ("v1",))
    yield Rule(
        at=SPEC,
        field=".mxReplicaSpecs",
        message=(
            "label belongs to another format than runPolicy: write"
            f" template.metadata.annotations[{names.TUNER_KEY_ANNOTATION}]"
        ),
        holds=lambda spec: (
            "runPolicy" not in spec or not any("label" in each for each in spec.get("mxReplicaSpecs", {}).values())
        ),
    )
    modes = (*_MODES, "", DIST, LOCAL)
    yield Rule(
        at=(*SPEC, "jobMode"),
        cel=f"self in {list(modes)}",
        message=f"did you mean {' or '.join(_MODES)}?",
        holds=lambda mode: mode in modes,
        of_submission=True,
    )
    yield no_field("mxPort", "is fioravanzo.org's: write PsRootPort", at=ENTRY)
    yield no_field(
        "mxReplicaSpecs",
        f"{_ALPHA} has the list replicaSpecs: write apiVersion: {names.API_VERSION}",
        versions=("v1alpha1",),
    )
    of_beta = {
        "replicaSpecs": f"has the map mxReplicaSpecs: write apiVersion: {_ALPHA}",
        "runPolicy": f"has none: write its fields straight under spec, or apiVersion: {names.API_VERSION}",
        **{
            field: f"has none: write apiVersion: {names.API_VERSION} and spec.runPolicy.{field}"
            for field in FLAT_FIELDS
            if field not in BETA_FIELDS
        },
    }
    for field, why in of_beta.items():
        yield no_field(field, f"{_BETA} {why}", versions=("v1beta1",))


def _what_is_required() -> Iterator[Rule]:
    yield Rule(
        at=SPEC,
        field=".mxReplicaSpecs",
        cel="has(self.mxReplicaSpecs) || has(self.replicaSpecs)",
        message="the replicas by type",
        holds=lambda spec: "mxReplicaSpecs" in spec or "replicaSpecs" in spec,
        required=True,
    )
    yield Rule(
        at=SPEC,
        field=".jobMode",
        cel="has(self.jobMode) || has(self.replicaSpecs)",
        message="MXTrain or MXTune",
        holds=lambda spec: "replicaSpecs" in spec or "jobMode" in spec,
        required=True,
    )
