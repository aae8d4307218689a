"""What Argo's own evaluation makes of the tags of the template that takes a whole MXJob, and what is refused before."""

import json
from typing import Any

import pytest
import yaml
from argo_expressions import Expressions
from hera.workflows import Parameter
from manifest_mutations import VALUES

from mxnet_argo import MXJobSpec, MXJobStep, data, mxjob_ref
from mxnet_argo.catalog import manifest as manifest_step
from mxnet_argo.checked_job import CheckedJob
from mxnet_argo.manifest_input import AS_JSON
from mxnet_operator.api.structural import FieldError
from mxnet_operator.api.validation import template_errors, unknown_fields, validate, without_nulls

CONTAINER = {"name": "mxnet", "image": "i", "command": ["true"]}
SPEC: dict[str, Any] = {
    "jobMode": "MXTrain",
    "mxReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": {"containers": [CONTAINER]}}}},
}
SPECIAL = "\x7f\x80\x85\x9f\u2028\ufeff\ufffe\uffff\U0001f468 ${{a}}'\"\\\t\n\x01"
"""What JSON, YAML, Argo or the kubelet would read as something else."""
RUN = {
    "workflow.name": "run",
    "workflow.namespace": "ml",
    "workflow.uid": "uid",
    "workflow.parameters.json": "[]",
    "node.name": "run",
    "inputs.parameters.deadline": "3600",
    "inputs.parameters.delete-with-workflow": "true",
}


def evaluated(argo: Expressions, text: str, **inputs: str) -> dict[str, Any]:
    """The manifest that Argo applies where the input has this text; each tag is evaluated without an error."""
    template = str(manifest_step()._build_manifest())
    filled_in = argo.filled_in(template, {**RUN, "inputs.parameters.manifest": text, **inputs})
    made: dict[str, Any] = yaml.safe_load(filled_in)
    return made


@pytest.mark.programs("argo-evaluate")
class TestEvaluated:
    def test_the_jobs_own_fields_stay_and_the_runs_are_added(self, argo: Expressions) -> None:
        metadata = {"name": "digits", "namespace": "ml", "labels": {"team": "a"}, "uid": "other", "finalizers": ["x"]}
        made = evaluated(argo, json.dumps({"metadata": metadata, "spec": SPEC}))
        assert made["metadata"]["name"].startswith("digits-")
        assert made["metadata"]["labels"]["team"] == "a"
        assert made["metadata"]["labels"]["mxjob.kubeflow.org/workflow-uid"] == "uid"
        assert set(made["metadata"]) == {"name", "namespace", "labels", "annotations", "ownerReferences"}
        assert made["spec"] == {**SPEC, "runPolicy": {"activeDeadlineSeconds": 3600}}

    def test_what_the_job_says_of_its_deadline_stands(self, argo: Expressions) -> None:
        policy = {"activeDeadlineSeconds": 60, "backoffLimit": 0}
        made = evaluated(argo, json.dumps({"spec": {**SPEC, "runPolicy": policy}}))
        assert made["spec"]["runPolicy"] == policy
        assert made["metadata"]["name"].startswith("mxjob-")

    def test_any_character_arrives(self, argo: Expressions) -> None:
        made = evaluated(argo, json.dumps({"spec": {**SPEC, "runPolicy": {"schedulingPolicy": {"queue": SPECIAL}}}}))
        assert made["spec"]["runPolicy"]["schedulingPolicy"] == {"queue": SPECIAL}

    def test_what_is_null_says_nothing(self, argo: Expressions) -> None:
        made = evaluated(argo, json.dumps({"metadata": None, "spec": {**SPEC, "runPolicy": {"suspend": None}}}))
        assert made["metadata"]["name"].startswith("mxjob-")
        assert evaluated(argo, json.dumps({"spec": {**SPEC, "runPolicy": None}}))["spec"]["runPolicy"] is not None

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("kind: MXJob", "no MXJob as JSON"),
            ('{"spec": "x", "metadata": 3}', "no MXJob as JSON"),
            (json.dumps({"metadata": [1], "spec": SPEC}), "are mappings"),
            (json.dumps({"metadata": {"labels": "a=b"}, "spec": SPEC}), "are mappings"),
            (json.dumps({"metadata": {"name": 3}, "spec": SPEC}), "its name is text"),
            (json.dumps({"spec": {**SPEC, "runPolicy": 7}}), "are mappings"),
            (json.dumps({"kind": "Job", "spec": SPEC}), "of another kind"),
            (json.dumps({"apiVersion": "kubeflow.org/v1beta1", "spec": SPEC}), "convert it first: mxjob convert"),
            (json.dumps({"apiVersion": 1, "spec": SPEC}), "convert it first"),
            (json.dumps({"spec": {**SPEC, "backoffLimit": 3}}), "convert it first"),
            (json.dumps({"spec": {"replicaSpecs": []}}), "convert it first"),
            (json.dumps({"metadata": {"namespace": "prod"}, "spec": SPEC}), "namespace is that of the workflow"),
            (json.dumps({"spec": SPEC, "metdata": {}}), "the manifest has no field metdata"),
            (json.dumps({"spec": SPEC, "metadata": {"lables": {}}}), "the manifest has no field metadata.lables"),
            (json.dumps({"spec": {**SPEC, "runPolicy": {"suspend": True}}}), "leave runPolicy.suspend out"),
            (json.dumps({"spec": {**SPEC, "runPolicy": {"suspend": False}}}), "leave runPolicy.suspend out"),
        ],
    )
    def test_what_can_not_be_taken_is_the_name_that_the_api_server_rejects(
        self, argo: Expressions, text: str, words: str
    ) -> None:
        made = evaluated(argo, text)
        assert words in made["metadata"]["name"]
        assert made["spec"] == {}

    def test_only_true_and_false_say_whether_the_job_goes_with_its_workflow(self, argo: Expressions) -> None:
        for asked in ("True", "TRUE", "yes", "1", " true", ""):
            made = evaluated(argo, json.dumps({"spec": SPEC}), **{"inputs.parameters.delete-with-workflow": asked})
            assert made["metadata"]["name"] == f"delete-with-workflow is neither true nor false: {asked}"

    @pytest.mark.parametrize(
        "text",
        [
            json.dumps({"metadata": {"name": SPECIAL, "labels": {SPECIAL: SPECIAL}}, "spec": {"a": SPECIAL}}),
            *("", "null", "0", '"}}', "{{workflow.name}}", '[{"spec": 1}]', '{"spec": [null, "}}"]}', "\u2028'"),
        ],
    )
    def test_whatever_is_given_each_tag_is_one_json_value(self, argo: Expressions, text: str) -> None:
        made = evaluated(argo, text)
        assert made["kind"] == "MXJob"
        assert made["metadata"]["ownerReferences"][0]["uid"] == "uid"
        assert made["metadata"]["labels"]["mxjob.kubeflow.org/workflow-uid"] == "uid"


NULLS: dict[str, Any] = {"activeDeadlineSeconds": None, "backoffLimit": 2}
PLACES: dict[str, tuple[Any, ...]] = {
    "apiVersion": ("kubeflow.org/v1", "kubeflow.org/v1beta1"),
    "kind": ("MXJob", "Job"),
    "metadata": ({"labels": None, "annotations": None},),
    "metadata.name": ("Train_1", "train-"),
    "metadata.namespace": ("ml",),
    "metadata.labels": ({"team": "vision"},),
    "metadata.annotations": ({"mxjob.kubeflow.org/delete-with-workflow": "false"},),
    "metadata.lables": (),
    "metadata.uid": (),
    "metdata": (),
    "status": ({"state": "Succeeded"},),
    "spec": (),
    "spec.jobMode": ("MXTune",),
    "spec.replicaSpecs": (),
    "spec.cleanPodPolicy": ("All",),
    "spec.runPolicy": (NULLS, {"activeDeadlineSecond": 1}),
    "spec.runPolicy.activeDeadlineSeconds": (60,),
    "spec.runPolicy.backoffLimit": (),
    "spec.runPolicy.suspend": (),
    "spec.mxReplicaSpecs.Worker.replicas": (),
}
"""Places of a manifest, and what may be meant there, besides the odd values that every place gets."""


def with_value(place: str, value: Any) -> dict[str, Any]:
    """A sound manifest but for one value."""
    manifest: dict[str, Any] = json.loads(json.dumps({"spec": SPEC}))
    *above, last = place.split(".")
    part = manifest
    for field in above:
        part = part.setdefault(field, {})
    part[last] = value
    return manifest


def why_not_when_built(manifest: dict[str, Any]) -> str:
    """What a reference says to a manifest that it rejects; nothing if it takes it."""
    try:
        mxjob_ref("train", "mxjob-manifest", {"manifest": manifest})
    except ValueError as error:
        return str(error)
    return ""


def why_not_when_run(made: dict[str, Any]) -> list[FieldError]:
    """What the API server says to an object that argoexec applies, which asks it to be strict."""
    return validate(made) or [*template_errors(made), *unknown_fields(made)]


@pytest.mark.programs("argo-evaluate")
@pytest.mark.parametrize("place", PLACES)
def test_a_reference_and_a_run_take_the_same_and_make_the_same_job_of_it(argo: Expressions, place: str) -> None:
    for value in (*PLACES[place], *(each for each in VALUES if each not in (2**63 - 1, 1e300))):
        if place == "metadata.namespace" and isinstance(value, str) and value not in ("", "ml"):
            continue  # only a run knows whether it is its own
        manifest = with_value(place, value)
        made = evaluated(argo, json.dumps(manifest))
        assert bool(why_not_when_built(manifest)) == bool(why_not_when_run(made)), (
            manifest,
            why_not_when_built(manifest),
            made,
        )
        if not why_not_when_run(made):
            step = MXJobStep(name="mxjob", manifest=without_place(manifest), deadline=3600)
            assert without_nulls(made)["spec"] == without_nulls(CheckedJob(step).given())["spec"]


def without_place(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest without what ties it to a place, which a step of Python rejects."""
    metadata = manifest.get("metadata") or {}
    kept = ((key, metadata.get(key) or {}) for key in ("labels", "annotations"))
    return {
        **manifest,
        "metadata": {key: {name: text for name, text in each.items() if text is not None} for key, each in kept},
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("kind: MXJob", "is not JSON.*kubectl create -n NAMESPACE --dry-run=client"),
        ([1], "it is no MXJob"),
        ({"spec": {**SPEC, "runPolicy": {"suspend": True}}}, "runPolicy.suspend: leave it out"),
        ({"metadata": {"name": "Train_1"}, "spec": SPEC}, "'Train_1' can't begin the name of an MXJob"),
        ({"apiVersion": "kubeflow.org/v1beta1", "spec": SPEC}, "input manifest: .* of the format v1beta1, .*convert"),
        ({"spec": SPEC, "metdata": {}}, 'input manifest: metdata: unknown field "metdata", did you mean metadata'),
    ],
)
def test_a_reference_is_checked_when_it_is_built(given: object, words: str) -> None:
    """With words; what is rejected is compared with a run above."""
    with pytest.raises(ValueError, match=words):
        mxjob_ref("train", "mxjob-manifest", {"manifest": given})


def test_a_reference_to_a_sound_job_is_taken_and_so_are_argos_tags() -> None:
    mxjob_ref("train", "mxjob-manifest", {"manifest": {"metadata": {"name": "a"}, "spec": SPEC}})
    mxjob_ref("train", "mxjob-manifest", {"manifest": "{{inputs.parameters.job}}"})
    mxjob_ref("train", "mxjob-manifest", {"manifest": {"metadata": None, "spec": {**SPEC, "runPolicy": None}}})
    mxjob_ref("train", "mxjob-manifest", {"manifest": {"spec": {**SPEC, "runPolicy": {"suspend": None}}}})


AS_KUBECTL_WRITES_IT = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MXJob",
    "metadata": {"name": "digits", "namespace": "ml"},
    "spec": SPEC,
}
"""What `kubectl create -n ml --dry-run=client -o json` prints: its namespace is in it."""


@pytest.mark.programs("argo-evaluate")
@pytest.mark.parametrize(("namespace", "sound"), [("ml", True), ("default", False)])
def test_a_run_takes_what_kubectl_makes_for_its_own_namespace(
    argo: Expressions, namespace: str, *, sound: bool
) -> None:
    metadata = {"name": "digits", "namespace": namespace}
    made = evaluated(argo, json.dumps({**AS_KUBECTL_WRITES_IT, "metadata": metadata}))
    assert made["metadata"]["name"].startswith("digits-") is sound
    assert (f"name it: {AS_JSON}" in made["metadata"]["name"]) is not sound


def test_an_input_that_is_not_declared_and_a_spec_beside_it_are_refused() -> None:
    with pytest.raises(ValueError, match="uses job: declare it in inputs"):
        MXJobStep(name="a", manifest=data("job"))
    with pytest.raises(ValueError, match="spec: an input has the whole manifest"):
        MXJobStep(name="a", manifest=data("job"), spec=MXJobSpec(image="i"), inputs=[Parameter(name="job")])
