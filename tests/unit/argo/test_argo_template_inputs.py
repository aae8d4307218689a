"""The inputs of the shipped templates say what a description says, with its defaults, and are checked by `mxjob_ref`.

The tags themselves were evaluated by the engine of Argo 3.7.18 (docs/facts/argo.md).
"""

import json
from typing import Any

import pytest
from descriptions import MEANT

from mxnet_argo import mxjob_ref
from mxnet_argo.catalog import train
from mxnet_argo.template_job import TemplateJob
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
        (
            {"gpus-per-worker": "2", "resources": '{"limits": {"nvidia.com/gpu": 1}}'},
            r"gpus-per-worker: is 2, but resources.limits\[nvidia.com/gpu\] is 1: give one of them",
        ),
        (
            {"gpus-per-worker": "1", "resources": '{"requests": {"nvidia.com/gpu": 3}}'},
            r"gpus-per-worker: is 1, but resources.requests\[nvidia.com/gpu\] is 3: give one of them",
        ),
        ({"node_selector": "{}"}, "did you mean 'node-selector'"),
    ],
)
def test_an_argument_that_is_not_what_its_place_takes_is_named(arguments: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mxjob_ref("train", "mxjob-train", {**COMMON, **arguments})
