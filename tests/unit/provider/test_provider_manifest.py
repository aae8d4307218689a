"""From a DAG author's manifest or arguments to an MXJob."""

import pytest

from mxnet_operator.api.validation import unknown_fields, validate
from mxnet_provider import manifest
from mxnet_provider.exceptions import MXNetManifestError

BUILT = {
    "image": "mxjob/digits:1.0",
    "command": ["python", "train.py"],
    "args": ["--epochs", "3"],
    "env": {"SEED": "1"},
    "workers": 2,
    "servers": 1,
    "schedulers": 1,
    "resources": {"limits": {"nvidia.com/gpu": 1}},
}


def containers(job):
    specs = job["spec"]["mxReplicaSpecs"]
    return {name: spec["template"]["spec"]["containers"][0] for name, spec in specs.items()}


def test_a_built_job_is_valid():
    job = manifest.build(**BUILT)
    job["metadata"]["name"] = "built"
    assert validate(job) == []
    assert unknown_fields(job) == []
    assert manifest.replica_counts(job) == {"Scheduler": 1, "Server": 1, "Worker": 2}


def test_every_replica_of_a_built_job_runs_the_same_container():
    for container in containers(manifest.build(**BUILT)).values():
        container.pop("resources", None)
        assert container == {
            "name": "mxnet",
            "image": "mxjob/digits:1.0",
            "command": ["python", "train.py"],
            "args": ["--epochs", "3"],
            "env": [{"name": "SEED", "value": "1"}],
        }


def test_only_workers_of_a_built_job_ask_for_resources():
    asking = [name for name, container in containers(manifest.build(**BUILT)).items() if "resources" in container]
    assert asking == ["Worker"]


def test_a_type_with_no_replicas_is_left_out():
    job = manifest.build(**{**BUILT, "servers": 0, "schedulers": 0})
    assert list(job["spec"]["mxReplicaSpecs"]) == ["Worker"]


def test_a_given_dict_is_not_changed():
    given = {"metadata": {"labels": {"a": "b"}}}
    parsed = manifest.parse(given)
    parsed["metadata"]["labels"]["a"] = "c"
    assert given == {"metadata": {"labels": {"a": "b"}}}


@pytest.mark.parametrize("text", ["kind: MXJob\n", '{"kind": "MXJob"}', "---\nkind: MXJob\n---\n"])
def test_one_document_of_yaml_or_json_is_read(text):
    assert manifest.parse(text) == {"kind": "MXJob"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not valid YAML"),
        ("", "0 documents"),
        ("a: 1\n---\nb: 2\n", "2 documents"),
        ("just words", "the first a str"),
    ],
)
def test_text_that_is_no_manifest_is_refused(text, message):
    with pytest.raises(MXNetManifestError, match=message):
        manifest.parse(text)


@pytest.mark.parametrize("job", [{}, {"spec": None}, {"spec": {"mxReplicaSpecs": []}}, {"spec": []}])
def test_counting_replicas_leaves_malformed_manifests_to_validation(job):
    assert manifest.replica_counts(job) == {}


def test_replicas_default_to_one_and_a_bad_count_is_left_to_validation():
    job = {"spec": {"mxReplicaSpecs": {"Worker": {}, "Server": {"replicas": "two"}, "Scheduler": None}}}
    assert manifest.replica_counts(job) == {"Worker": 1, "Server": 1, "Scheduler": 1}


def test_metadata_that_is_no_mapping_is_refused():
    with pytest.raises(MXNetManifestError, match="metadata: Invalid value"):
        manifest.metadata_of({"metadata": "digits"})
