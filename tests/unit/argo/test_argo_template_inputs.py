"""The inputs of the shipped templates say what a description says, with its defaults, and are checked by `mxjob_ref`.

The tags themselves were evaluated by the engine of Argo 3.7.18 (docs/facts/argo.md).
"""

import json
from typing import Any

import pytest

from mxnet_argo import mxjob_ref
from mxnet_argo.catalog import train
from mxnet_argo.template_job import TemplateJob
from mxnet_operator.job import MXJobDescription, to_manifest

COMMON = {"image": "a:1", "command": '["python", "train.py"]'}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "images"}}
SAME: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"workers": "1"}, {"workers": 1}),
    ({"workers": "3"}, {"workers": 3}),
    ({"workers": "3", "servers": "0"}, {"workers": 3, "servers": 0}),
    ({"workers": "3", "servers": "1"}, {"workers": 3, "servers": 1}),
    ({"volumes": json.dumps([CLAIM])}, {"volumes": [CLAIM]}),
    ({"node-selector": '{"pool": "gpus"}'}, {"node_selector": {"pool": "gpus"}}),
    ({"image-pull-secrets": '[{"name": "registry"}]'}, {"image_pull_secrets": ["registry"]}),
    ({"gpus-per-worker": "2"}, {"gpus_per_worker": 2}),
    (
        {"gpus-per-worker": "2", "resources": '{"limits": {"cpu": 1}}'},
        {"gpus_per_worker": 2, "container_resources": {"limits": {"cpu": 1}}},
    ),
]


def lean(spec: dict[str, Any]) -> dict[str, Any]:
    """The replicas of a job without what is empty, and quantities as text; types without replicas are left out."""

    def pruned(node: Any) -> Any:
        if isinstance(node, dict):
            kept = {key: pruned(value) for key, value in node.items() if key not in ("metadata", "restartPolicy")}
            return {key: value for key, value in kept.items() if value not in ({}, [])}
        return [pruned(each) for each in node] if isinstance(node, list) else str(node)

    replicas: dict[str, Any] = pruned(spec["mxReplicaSpecs"])
    return {name: each for name, each in replicas.items() if each["replicas"] != "0"}


@pytest.mark.parametrize(("inputs", "fields"), SAME, ids=str)
def test_an_input_means_what_the_field_of_its_name_means(inputs: dict[str, str], fields: dict[str, Any]) -> None:
    job = TemplateJob.of(train())
    made = job._sample(job.given(), {**COMMON, **inputs})
    described = to_manifest(MXJobDescription(image="a:1", command=["python", "train.py"], **fields))
    assert lean(made["spec"]) == lean(described["spec"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"servers": "many"}, "input servers: 'many' is not a whole number"),
        ({"volumes": "data"}, "input volumes: 'data' is not JSON"),
        ({"gpus-per-worker": "two"}, "gpus-per-worker"),
        ({"node_selector": "{}"}, "did you mean 'node-selector'"),
    ],
)
def test_an_argument_that_is_not_what_its_place_takes_is_named(arguments: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mxjob_ref("train", "mxjob-train", {**COMMON, **arguments})
