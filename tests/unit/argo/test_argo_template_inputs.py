"""The inputs of the shipped templates say what a description says, with its defaults, and are checked by `mxjob_ref`.

The tags themselves were evaluated by the engine of Argo 3.7.18 (docs/facts/argo.md).
"""

import json
import re
from typing import Any

import pytest
from argo_expressions import Expressions
from descriptions import MEANT

from mxnet_argo import MXJobRunner, MXJobStep, mxjob_ref
from mxnet_argo.catalog import CATALOG, train
from mxnet_argo.checked_job import CheckedJob
from mxnet_argo.inputs import parameters
from mxnet_operator.api import names
from mxnet_operator.api.manifest_text import ManifestError, load
from mxnet_operator.description import MXJobDescription, Role, to_manifest
from mxnet_operator.description.plain import plain

COMMON = {"image": "a:1", "command": '["python", "train.py"]'}
INPUTS = {"container_resources": "resources"} | {
    field: field.replace("_", "-")
    for field in (
        *("args", "env", "workers", "servers", "gpus_per_worker", "volumes", "volume_mounts"),
        *("node_selector", "tolerations", "image_pull_secrets", "backoff_limit"),
    )
}
"""Input by the field of a description that it is."""
OF_THE_TABLE = [
    case
    for case, (fields, _) in MEANT.items()
    if fields.keys() <= INPUTS.keys()
    and not any(isinstance(fields.get(role), Role | dict) for role in ("workers", "servers"))
    and not isinstance(fields.get("env"), dict)  # an input has the list
]
SAME: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    **{
        case: (
            {
                INPUTS[field]: str(value) if isinstance(value, int) else json.dumps(plain(value))
                for field, value in MEANT[case][0].items()
            },
            MEANT[case][0],
        )
        for case in OF_THE_TABLE
    },
    "three workers": ({"workers": "3"}, {"workers": 3}),
    "three workers and a server": ({"workers": "3", "servers": "1"}, {"workers": 3, "servers": 1}),
    "a node selector": ({"node-selector": '{"pool": "gpus"}'}, {"node_selector": {"pool": "gpus"}}),
    "GPUs beside other resources": (
        {"gpus-per-worker": "2", "resources": '{"limits": {"cpu": 1}}'},
        {"gpus_per_worker": 2, "container_resources": {"limits": {"cpu": 1}}},
    ),
    "GPUs said twice and alike": (
        {"gpus-per-worker": "2", "resources": '{"limits": {"nvidia.com/gpu": 2}}'},
        {"gpus_per_worker": 2},
    ),
}


def lean(spec: dict[str, Any]) -> dict[str, Any]:
    """The replicas of a job without what is empty, and quantities as text; types without replicas are left out."""

    def pruned(node: Any) -> Any:
        if isinstance(node, dict):
            kept = {key: pruned(value) for key, value in node.items() if key not in ("metadata", "restartPolicy")}
            return {key: value for key, value in kept.items() if value not in ({}, [])}
        return [pruned(each) for each in node] if isinstance(node, list) else str(node)

    replicas: dict[str, Any] = pruned(spec["mxReplicaSpecs"])
    return {name: each for name, each in replicas.items() if each["replicas"] != "0"}


@pytest.mark.parametrize("case", SAME)
def test_an_input_means_what_the_field_of_its_name_means(case: str) -> None:
    inputs, fields = SAME[case]
    job = CheckedJob(train())
    made = job._sample(job.given(), {**COMMON, **inputs})
    described = to_manifest(MXJobDescription(image="a:1", command=["python", "train.py"], **fields))
    assert lean(made["spec"]) == lean(described["spec"])


SHARED = {
    "image": "b:2",
    "command": '["sh"]',
    "args": '["--lr", "0.1"]',
    "env": '[{"name": "A", "value": "x y"}]',
    "workers": "3",
    "servers": "2",
    "resources": '{"limits": {"cpu": 1}}',
    "gpus-per-worker": "2",
    "volumes": '[{"name": "v", "emptyDir": {}}]',
    "volume-mounts": "[]",
    "node-selector": '{"pool": "gpus"}',
    "tolerations": '[{"operator": "Exists"}]',
    "image-pull-secrets": '[{"name": "registry"}]',
    "backoff-limit": "2",
    "deadline": "60",
    "delete-with-workflow": "false",
}
"""A value for each parameter of a training that templates share."""
RUN = {
    "workflow.name": "run",
    "workflow.namespace": "ml",
    "workflow.uid": "uid",
    "workflow.parameters.json": "[]",
    "node.name": "run",
    "inputs.parameters.trial": "0.1",
    "inputs.parameters.tuned": "0.1",
}


def argos_manifest(argo: Expressions, template: str, given: dict[str, str]) -> str:
    """The manifest of the training that a template makes of these arguments, by Argo's own evaluation."""
    workflow = CATALOG[template]()
    (step,) = (each for each in workflow.templates if getattr(each, "name", "") in ("train", "run"))
    assert isinstance(step, MXJobStep | MXJobRunner)
    defaults = {name: str(each.default) for name, each in parameters(step.inputs).items() if each.default is not None}
    scope = {f"inputs.parameters.{name}": value for name, value in {**defaults, **COMMON, **given}.items()}
    text = step._build_manifest() if isinstance(step, MXJobStep) else step._manifest()
    return argo.filled_in(text, {**RUN, **scope})


def argos_job(argo: Expressions, template: str, given: dict[str, str]) -> dict[str, Any]:
    """The same as a job, without what is the template's own."""
    job: dict[str, Any] = load(argos_manifest(argo, template, given))
    job["metadata"]["name"] = ""
    for replica in job["spec"]["mxReplicaSpecs"].values():
        (container,) = replica["template"]["spec"]["containers"]
        container["env"] = [each for each in container["env"] if each["name"] not in ("TRIAL", "TUNED")]
    return job


@pytest.mark.kubernetes("argo-evaluate")
@pytest.mark.parametrize("template", ["mxjob-train", "mxjob-runner", "mxjob-sweep", "mxjob-tune-then-train"])
def test_every_template_passes_every_shared_parameter_on_to_its_training(argo: Expressions, template: str) -> None:
    assert parameters(CATALOG["mxjob-train"]().arguments).keys() - {"on-failure", "keep-failed-for"} == SHARED.keys()
    without = argos_job(argo, "mxjob-train", {})
    assert without["metadata"]["annotations"] == {names.DELETE_WITH_WORKFLOW_ANNOTATION: "true"}
    for name, value in SHARED.items():
        meant = argos_job(argo, "mxjob-train", {name: value})
        assert (meant != without) == (name != "volume-mounts")
        assert argos_job(argo, template, {name: value}) == meant, name
    arguments = parameters(CATALOG[template]().arguments)
    assert arguments.keys() >= SHARED.keys()


@pytest.mark.kubernetes("argo-evaluate")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gpus-per-worker": "1.5"}, "gpus-per-worker is no whole number: 1.5"),
        ({"gpus-per-worker": "-1"}, "gpus-per-worker is no whole number: -1"),
        (
            {"volume-mounts": '[{"name": "data", "mountPath": "/data"}]'},
            'volume-mounts has a name that is none of volumes: [{"name": "data", "mountPath": "/data"}]',
        ),
        ({"workers": "two"}, "workers is no whole number: two"),
        ({"delete-with-workflow": "True"}, "delete-with-workflow is neither true nor false: True"),
        ({"delete-with-workflow": " true"}, "delete-with-workflow is neither true nor false:  true"),
        ({"resources": "[]", "gpus-per-worker": "1"}, "resources is no JSON mapping: []"),
    ],
)
@pytest.mark.parametrize("template", ["mxjob-train", "mxjob-runner", "mxjob-sweep", "mxjob-tune-then-train"])
def test_what_no_job_can_have_is_refused_in_words_before_there_is_a_job(
    argo: Expressions, template: str, given: dict[str, str], words: str
) -> None:
    filled_in = argos_manifest(argo, template, given)
    with pytest.raises(ManifestError, match=re.escape(f"{words!r} is not of type null")):
        load(filled_in)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"gpus-per-worker": "1.5"}, "gpus-per-worker: '1.5' is not a whole number"),
        ({"volume-mounts": [{"name": "data", "mountPath": "/data"}]}, "input volume-mounts: 'data' is none of volumes"),
        ({"servers": "many"}, "input servers: 'many' is not a whole number"),
        ({"volumes": "data"}, "input volumes: 'data' is not JSON"),
        ({"gpus-per-worker": "two"}, "gpus-per-worker"),
        (
            {"gpus-per-worker": "2", "resources": '{"limits": {"nvidia.com/gpu": 1}}'},
            r"gpus-per-worker: is 2, but resources.limits\[nvidia.com/gpu\] is 1: give one of them",
        ),
        (
            {"gpus-per-worker": "1", "resources": '{"requests": {"nvidia.com/gpu": 3}}'},
            r"gpus-per-worker: is 1, but resources.requests\[nvidia.com/gpu\] is 3: give one of them",
        ),
        ({"delete-with-workflow": "True"}, "delete-with-workflow is 'True': did you mean 'true'"),
        ({"node_selector": "{}"}, "did you mean 'node-selector'"),
    ],
)
def test_an_argument_that_is_not_what_its_place_takes_is_named(arguments: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mxjob_ref("train", "mxjob-train", {**COMMON, **arguments})
