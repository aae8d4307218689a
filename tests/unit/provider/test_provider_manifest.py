"""From a DAG author's manifest or arguments to an MXJob."""

import sys
from types import SimpleNamespace

import pytest
import yaml
from seed_manifests import SEED_000_MXNETJOB, SEED_003_LINEAR, SEED_004_DIST, V1BETA1_TUNE
from unreadable_manifests import REFUSED

from mxnet_operator.api import names
from mxnet_operator.description import MXJobDescription, to_manifest
from mxnet_provider.exceptions import MXNetManifestError
from mxnet_provider.job import manifest
from mxnet_provider.operators.mxnet_job import MXNetJobOperator

BUILT = {
    "image": "mxjob/digits:1.0",
    "command": ["python", "train.py"],
    "args": ["--epochs", "3"],
    "env": {"SEED": "1"},
    "workers": 2,
    "servers": 1,
    "schedulers": 1,
    "container_resources": {"limits": {"nvidia.com/gpu": 1}},
}


def built(**fields):
    return to_manifest(MXJobDescription(**{**BUILT, **fields}))


def test_a_given_dict_is_not_changed():
    given = {"metadata": {"labels": {"a": "b"}}}
    parsed = manifest.parse(given)
    parsed["metadata"]["labels"]["a"] = "c"
    assert given == {"metadata": {"labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not valid YAML"),
        ("", "found 0 in 0 documents"),
        ("a: 1\n---\nb: 2\n", "found 2 in 2 documents"),
        ("job", r"the text 'job': a file is named by a text without templates that ends in \.yaml"),
        ("https://example.com/job.yml?raw=1", "the address 'https:.*: nothing is downloaded"),
        ("- a", "must be one MXJob, is a list"),
        ("kind: MXJob\n---\nkind: Deployment\napiVersion: apps/v1\n", "apps/v1 Deployment can't be created with"),
    ],
)
def test_text_that_is_no_manifest_is_refused(text, message):
    with pytest.raises(MXNetManifestError, match=message):
        manifest.parse(text)


@pytest.mark.parametrize("case", REFUSED)
def test_whatever_can_be_no_manifest_is_refused_in_one_line(case):
    with pytest.raises(MXNetManifestError, match=r"^The manifest can't be read: [^\n]+$"):
        manifest.parse(REFUSED[case][0])


@pytest.mark.parametrize("job", [{}, {"spec": None}, {"spec": {"mxReplicaSpecs": []}}, {"spec": []}])
def test_counting_replicas_leaves_malformed_manifests_to_validation(job):
    assert manifest.replica_counts(job) == {}


def test_replicas_default_to_one_and_a_bad_count_is_left_to_validation():
    job = {"spec": {"mxReplicaSpecs": {"Worker": {}, "Server": {"replicas": "two"}, "Scheduler": None}}}
    assert manifest.replica_counts(job) == {"Worker": 1, "Server": 1, "Scheduler": 1}


@pytest.mark.parametrize("written", [V1BETA1_TUNE, SEED_004_DIST, SEED_003_LINEAR, SEED_000_MXNETJOB])
def test_a_manifest_of_an_older_format_becomes_the_v1_job_that_it_means(written):
    meant = manifest.as_v1(manifest.parse(written), print)
    assert (meant["apiVersion"], meant["kind"]) == ("kubeflow.org/v1", "MXJob")
    assert meant["metadata"] == yaml.safe_load(written)["metadata"]
    assert manifest.mistakes(meant) == []
    assert set(manifest.replica_counts(meant)) <= set(names.REPLICA_TYPES)
    manifest.label_templates(meant, {"dag_id": "train"})
    for spec in meant["spec"]["mxReplicaSpecs"].values():
        assert spec["template"]["metadata"]["labels"]["dag_id"] == "train"


def test_a_v1_manifest_stays_as_it_is():
    job = built()
    assert manifest.as_v1(job, print) is job


@pytest.mark.parametrize("given", [{"kind": "MXJob"}, {"spec": 1}, {"apiVersion": "v1", "kind": "Pod", "spec": {}}])
def test_what_is_no_job_is_refused(given):
    with pytest.raises(MXNetManifestError, match="invalid"):
        manifest.as_v1(given, print)


def test_what_a_manifest_of_an_older_format_loses_or_gains_is_told():
    told = []
    manifest.as_v1(manifest.parse(SEED_004_DIST), told.append)
    assert "apiVersion: was kubeflow.org/v1alpha1" in told
    assert "spec.mxReplicaSpecs: was the list spec.replicaSpecs" in told


def test_fields_that_this_release_does_not_know_are_named_and_taken_on_request():
    job = built()
    job["metadata"]["name"] = "newer"
    job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelectr"] = {"a": "b"}
    (mistake,) = manifest.mistakes(job)
    assert "did you mean nodeSelector?" in mistake
    assert manifest.mistakes(job, allow_unknown=True) == []


def test_openlineage_s_parent_run_is_a_variable_of_the_pods_unless_it_is_off_or_the_author_gives_one(monkeypatch):
    macros = SimpleNamespace(lineage_parent_id=lambda ti: f"ns/{ti.task_id}/run", lineage_root_parent_id=lambda _: "r")
    off: list[bool] = []
    conf = SimpleNamespace(is_disabled=lambda: bool(off))
    for name, module in {
        "airflow.providers.openlineage": SimpleNamespace(conf=conf),
        "airflow.providers.openlineage.plugins": SimpleNamespace(macros=macros),
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    ti = SimpleNamespace(dag_id="d", task_id="t", run_id="r", map_index=-1, try_number=1, max_tries=1, id="i")

    def variables(**given):
        operator = MXNetJobOperator(task_id="t", image="a", namespace="default", workers=2, **given)
        specs = operator.manifest_to_create({"ti": ti}, "0" * 32)["spec"]["mxReplicaSpecs"]
        containers = [each["template"]["spec"]["containers"][0] for each in specs.values()]
        assert len(containers) == 3
        return [{each["name"]: each["value"] for each in container.get("env", [])} for container in containers]

    assert variables() == [{"OPENLINEAGE_PARENT_ID": "ns/t/run", "OPENLINEAGE_ROOT_PARENT_ID": "r"}] * 3
    assert variables(env={"OPENLINEAGE_PARENT_ID": "own"})[0]["OPENLINEAGE_PARENT_ID"] == "own"
    off.append(True)
    assert variables() == [{}] * 3
    off.clear()
    macros.lineage_parent_id = lambda _: 1 / 0  # no job is lost over it
    assert variables() == [{}] * 3


ODD_TEMPLATES = [
    {"spec": {"containers": 7}},
    {"spec": {"containers": [{"name": "mxnet", "env": 7}]}},
    {"spec": {"containers": [7, {"name": "mxnet", "env": [7, {"name": []}]}]}},
    {"spec": 7},
    {},
]


@pytest.mark.parametrize("template", ODD_TEMPLATES, ids=str)
def test_variables_are_set_in_no_container_that_is_malformed(template):
    job = {"spec": {"mxReplicaSpecs": {"Worker": {"template": template}}}}
    manifest.add_environment(job, {})
    assert job == {"spec": {"mxReplicaSpecs": {"Worker": {"template": template}}}}
    manifest.add_environment(job, {"A": "1"})
