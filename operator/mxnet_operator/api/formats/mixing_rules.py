"""Rules that keep the formats of mxjobs.kubeflow.org apart, which share one schema and are all stored as v1.

Two formats mixed in one manifest are ambiguous, and a field is rejected in a version that did not have it: nothing is
guessed or dropped.
"""

from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.formats.flat_types import BETA_FIELDS, FLAT_FIELDS
from mxnet_operator.api.formats.lists import DIST, LOCAL
from mxnet_operator.api.formats.refusals import ENTRY, ONLY_V1, SPEC, no_field, not_in
from mxnet_operator.api.rules import Rule

_BETA: Final = f"{names.GROUP}/v1beta1"
_ALPHA: Final = f"{names.GROUP}/v1alpha1"
_MIXED: Final = "belongs to another format than the rest"
_MODES: Final = ["MXTrain", "MXTune"]
_OF_A_LIST: Final = {
    "cleanupPodPolicy": "write cleanPodPolicy, in v1 under runPolicy",
    "terminationPolicy": "write successPolicy: Scheduler or AllWorkers",
    "schedulerName": "write template.spec.schedulerName",
    "mxImage": "each container names its image",
    "RuntimeId": "status.RuntimeId has it",
}
"""Fields of the list format, and what is written beside a map in their place."""
_OF_A_MAP: Final = {
    **dict.fromkeys(("runPolicy", *FLAT_FIELDS), ONLY_V1),
    "cleanPodPolicy": "beside replicaSpecs write cleanupPodPolicy",
    "successPolicy": "beside replicaSpecs write terminationPolicy.chief",
}


MODE_IS_KNOWN: Final = Rule(
    at=(),
    field=".spec.jobMode",
    cel=f"has(self.spec.replicaSpecs) || !has(self.spec.jobMode) || self.spec.jobMode in {_MODES}",
    message=f"did you mean {' or '.join(_MODES)}?",
    holds=lambda job: "replicaSpecs" in job["spec"] or job["spec"].get("jobMode", _MODES[0]) in _MODES,
    at_creation=True,
    of_submission=True,
)


def rules_between_formats() -> Iterator[Rule]:
    """Yield the rules of mxjobs.kubeflow.org."""
    yield from _what_is_required()
    yield Rule(
        at=SPEC,
        field=".replicaSpecs",
        cel="!has(self.mxReplicaSpecs) || !has(self.replicaSpecs)",
        message=f"{_MIXED}: give all replicas in mxReplicaSpecs (v1), or all here (v1alpha1)",
        holds=lambda spec: "mxReplicaSpecs" not in spec or "replicaSpecs" not in spec,
    )
    for field, instead in _OF_A_LIST.items():
        yield _needs("replicaSpecs", "mxReplicaSpecs", field, instead)
    for field, instead in _OF_A_MAP.items():
        yield _needs("mxReplicaSpecs", "replicaSpecs", field, instead)
    for field in FLAT_FIELDS:
        yield _not_beside_run_policy(field)
    yield Rule(
        at=SPEC,
        field=".mxReplicaSpecs",
        cel=(
            "!has(self.runPolicy) || !has(self.mxReplicaSpecs) || "
            "self.mxReplicaSpecs.all(t, !has(self.mxReplicaSpecs[t].label))"
        ),
        message=f"label {_MIXED}: write template.metadata.annotations[{names.TUNER_KEY_ANNOTATION}]",
        holds=lambda spec: (
            "runPolicy" not in spec or not any("label" in each for each in spec.get("mxReplicaSpecs", {}).values())
        ),
    )
    yield Rule(
        at=SPEC,
        field=".jobMode",
        cel=(
            "!has(self.replicaSpecs) || has(self.mxReplicaSpecs) || !has(self.jobMode) || "
            f"self.jobMode in ['', '{DIST}', '{LOCAL}']"
        ),
        message=f"must be {DIST} or {LOCAL}, beside replicaSpecs",
        holds=lambda spec: "replicaSpecs" not in spec or "mxReplicaSpecs" in spec or _is_list_mode(spec),
    )
    yield MODE_IS_KNOWN
    yield no_field("mxPort", "is fioravanzo.org's: write PsRootPort", at=ENTRY)
    yield not_in(_ALPHA, "mxReplicaSpecs", f"{_ALPHA} has the list replicaSpecs: write apiVersion: {names.API_VERSION}")
    yield not_in(_BETA, "replicaSpecs", f"{_BETA} has the map mxReplicaSpecs: write apiVersion: {_ALPHA}")
    yield not_in(
        _BETA,
        "runPolicy",
        f"{_BETA} has none: write its fields straight under spec, or apiVersion: {names.API_VERSION}",
    )
    for field in FLAT_FIELDS:
        if field not in BETA_FIELDS:
            yield not_in(
                _BETA, field, f"{_BETA} has none: write apiVersion: {names.API_VERSION} and spec.runPolicy.{field}"
            )


def _is_list_mode(spec: Any) -> bool:
    return spec.get("jobMode", "") in {"", DIST, LOCAL}


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
        cel="has(self.replicaSpecs) || has(self.jobMode)",
        message="MXTrain or MXTune",
        holds=lambda spec: "replicaSpecs" in spec or "jobMode" in spec,
        required=True,
    )


def _needs(replicas: str, others: str, field: str, instead: str) -> Rule:
    """Return the rule that a field is not used beside replicas of the other sort; both sorts are another mistake."""
    return Rule(
        at=SPEC,
        field=f".{field}",
        cel=f"has(self.{replicas}) || !has(self.{others}) || !has(self.{field})",
        message=f"{_MIXED}: {instead}",
        holds=lambda spec: replicas in spec or others not in spec or field not in spec,
    )


def _not_beside_run_policy(field: str) -> Rule:
    def holds(job: Any) -> bool:
        return job.get("apiVersion") == _BETA or "runPolicy" not in job["spec"] or field not in job["spec"]

    return Rule(
        at=(),
        field=f".spec.{field}",
        # v1beta1's default may have filled the field in: there, the runPolicy is what is wrong.
        cel=f"self.apiVersion == '{_BETA}' || !has(self.spec.runPolicy) || !has(self.spec.{field})",
        message=f"{_MIXED}: beside runPolicy write spec.runPolicy.{field}",
        holds=holds,
    )
