"""What templates make of an operator's options, in Airflow's ordinary rendering and in its native one."""

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk import DAG
from kubernetes import client

from mxnet_operator.cli.mxjob import app
from mxnet_operator.description import Role
from mxnet_provider.exceptions import MXNetManifestError
from mxnet_provider.operators import mxnet_job
from mxnet_provider.operators.mxnet_job import MXNetJobOperator

NATIVE = pytest.mark.parametrize("native", [False, True], ids=["text", "native"])
CONTEXT: Any = {"params": {"epochs": 20, "rate": "0.10", "workers": 2, "gpus": 1, "team": "7"}}
CONTAINER = {
    "name": "mxnet",
    "image": "i",
    "args": ["--epochs", "20", "{{ params.epochs }}"],
    "env": [{"name": "LR", "value": "{{ params.rate }}"}],
}
MANIFEST = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MXJob",
    "metadata": {"labels": {"team": "{{ params.team }}"}},
    "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [CONTAINER]}}}}},
}


def rendered(native: bool, **options: Any) -> MXNetJobOperator:
    with DAG("d", schedule=None, render_template_as_native_obj=native):
        operator = MXNetJobOperator(task_id="t", **options)
    operator.render_template_fields(CONTEXT)
    return operator


def worker_of(operator: MXNetJobOperator) -> dict[str, Any]:
    found: dict[str, Any] = operator.given_manifest()["spec"]["mxReplicaSpecs"]["Worker"]
    return found


@NATIVE
def test_arguments_and_variables_stay_text_however_they_look(native: bool) -> None:
    operator = rendered(
        native,
        image="i",
        args=["--epochs", "20", "{{ params.epochs }}", "{{ params.rate }}", "[1]", "None", "conf.yaml"],
        env={"A": "0.10", "B": "{{ params.rate }}", "C": "{{ params.epochs }}"},
        labels={"team": "{{ params.team }}"},
        pod_labels={"team": "7"},
    )
    container = worker_of(operator)["template"]["spec"]["containers"][0]
    assert container["args"] == ["--epochs", "20", "20", "0.10", "[1]", "None", "conf.yaml"]
    assert {each["name"]: each["value"] for each in container["env"]} == {"A": "0.10", "B": "0.10", "C": "20"}
    assert operator.given_manifest()["metadata"]["labels"]["team"] == "7"


@NATIVE
def test_variables_of_a_role_and_a_manifest_stay_text_however_they_look(native: bool) -> None:
    role = Role(replicas="{{ params.workers }}", gpus="{{ params.gpus }}", args=["{{ params.epochs }}", "1"])
    spec = worker_of(rendered(native, image="i", workers=role))
    assert spec["replicas"] == 2
    container = spec["template"]["spec"]["containers"][0]
    assert container["args"] == ["20", "1"]
    assert [int(each) for each in container["resources"]["limits"].values()] == [1]
    operator = rendered(native, manifest=MANIFEST)
    container = worker_of(operator)["template"]["spec"]["containers"][0]
    assert (container["args"], container["env"][0]["value"]) == (["--epochs", "20", "20"], "0.10")
    assert operator.given_manifest()["metadata"]["labels"]["team"] == "7"


@pytest.mark.parametrize("resolved", [True, False], ids=["with the DAG", "mapped"])
@pytest.mark.parametrize(
    "named",
    [
        lambda folder: "job.yaml",
        lambda folder: "job.yaml ",
        lambda folder: Path("job.yaml"),
        lambda folder: str(folder / "job.yaml"),
        lambda folder: folder / "job.yaml",
    ],
    ids=["name", "trailing blank", "Path", "absolute", "absolute Path"],
)
def test_a_manifest_s_file_is_found_as_users_name_it(
    named: Callable[[Path], Any], resolved: bool, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(MANIFEST))
    with DAG("d", schedule=None, template_searchpath=[str(tmp_path)]):
        operator = MXNetJobOperator(task_id="t", manifest=named(tmp_path))
    if resolved:
        operator.resolve_template_files()
    operator.render_template_fields(CONTEXT)
    assert operator.given_manifest()["metadata"]["labels"]["team"] == "7"


def test_the_dag_that_mxjob_init_writes_has_the_job_of_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my project"
    folder.mkdir()
    (folder / "train.py").write_text("print()\n")
    monkeypatch.setenv("MXJOB_HOME", str(tmp_path / "state"))
    app(["init", str(folder / "train.py"), "--workers", "2", "--", "--epochs", "2"], standalone_mode=False)
    tasks: list[MXNetJobOperator] = []
    monkeypatch.setattr(mxnet_job, "MXNetJobOperator", lambda **given: tasks.append(MXNetJobOperator(**given)))

    runpy.run_path(str(folder / "mxjob_dag.py"))

    (operator,) = tasks
    operator.resolve_template_files()
    operator.render_template_fields(CONTEXT)
    written = yaml.safe_load((folder / "mxjob.yaml").read_text())
    assert (operator.dag.dag_id, operator.given_manifest()) == ("train", written)
    assert worker_of(operator)["template"]["spec"]["containers"][0]["command"][-2:] == ["--epochs", "2"]


def test_a_manifest_s_missing_file_is_said_with_where_it_was_looked_for(tmp_path: Path) -> None:
    with DAG("d", schedule=None, template_searchpath=[str(tmp_path)]):
        tasks = [
            MXNetJobOperator(task_id=f"t{number}", manifest=each)
            for number, each in enumerate(["job.yaml", tmp_path / "job.yaml"])
        ]
    for operator in tasks:
        operator.resolve_template_files()
        with pytest.raises(MXNetManifestError, match=r"there is no file .*job\.yaml.*: name it relative to"):
            operator.render_template_fields(CONTEXT)


@NATIVE
def test_what_a_task_returned_is_not_taken_for_a_template(native: bool) -> None:
    """Airflow names the objects that came by `expand`, and renders none of them."""
    values = ["{{ params.rate }}", "20"]
    with DAG("d", schedule=None, render_template_as_native_obj=native):
        operator = MXNetJobOperator(task_id="t", image="{{ params.team }}", args=values)
    seen = {id(values), id(operator.image)}
    operator._do_render_template_fields(operator, ("args", "image"), CONTEXT, operator.get_template_env(), seen)
    assert (operator.args, operator.image) == (values, "{{ params.team }}")


class Output(Sequence[Any]):
    """What the output of a mapped task is to a task downstream: neither a list nor a tuple, as Airflow's own."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]


LISTS: dict[str, list[Any]] = {
    "command": ["python", "train.py"],
    "args": ["--epochs", "20"],
    "env": [{"name": "A", "value": "1"}],
    "env_from": [{"secretRef": {"name": "s"}}],
    "secrets": ["s"],
    "config_maps": ["c"],
    "volumes": [{"name": "v", "emptyDir": {}}],
    "volume_mounts": [{"name": "v", "mountPath": "/v"}],
    "image_pull_secrets": ["s"],
    "init_containers": [{"name": "i", "image": "i"}],
    "tolerations": [{"key": "k", "operator": "Exists"}],
}


@pytest.mark.parametrize("field", LISTS)
def test_what_the_tasks_of_a_mapped_task_return_is_a_list(field: str) -> None:
    shared: Any = {"image": "i", "namespace": "default"}
    if field == "volume_mounts":
        shared["volumes"] = LISTS["volumes"]
    expected = MXNetJobOperator(task_id="t", **shared, **{field: LISTS[field]}).given_manifest()
    operator = MXNetJobOperator(task_id="t", **shared)
    setattr(operator, field, Output(*LISTS[field]))
    assert operator.given_manifest() == expected
    of_role = MXNetJobOperator(task_id="t", **shared)
    of_role.workers = {"replicas": 1, field: Output(*LISTS[field])}
    whole = MXNetJobOperator(task_id="t", **shared, workers={"replicas": 1, field: LISTS[field]})
    assert of_role.given_manifest() == whole.given_manifest()


def test_what_mapped_tasks_return_is_a_list_within_a_manifest_too() -> None:
    operator = MXNetJobOperator(task_id="t", manifest=MANIFEST)
    expected = operator.given_manifest()
    container = {**CONTAINER, "args": Output(*CONTAINER["args"])}
    workers = {"Worker": {"template": {"spec": {"containers": Output(container)}}}}
    operator.manifest = {**MANIFEST, "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": workers}}
    assert operator.given_manifest() == expected


@NATIVE
def test_templates_in_what_a_cluster_policy_sets_are_rendered_as_an_author_s(native: bool) -> None:
    arguments: Any = {
        "workers": Role(replicas="{{ params.workers }}", args=["{{ params.epochs }}"]),
        "volumes": [client.V1Volume(name="v-{{ params.team }}", empty_dir=client.V1EmptyDirVolumeSource())],
    }
    with DAG("d", schedule=None, render_template_as_native_obj=native):
        by_policy = MXNetJobOperator(task_id="t", image="i")
    for field, value in arguments.items():
        setattr(by_policy, field, value)
    by_policy.render_template_fields(CONTEXT)
    spec = worker_of(by_policy)
    assert spec == worker_of(rendered(native, image="i", **arguments))
    assert spec["replicas"] == 2
    assert spec["template"]["spec"]["volumes"][0]["name"] == "v-7"


@pytest.mark.parametrize("field", ["args", "env", "node_selector"])
def test_a_template_in_place_of_a_list_or_mapping_is_told_what_makes_one(field: str) -> None:
    operator = rendered(False, image="i", **{field: "{{ params }}"})
    with pytest.raises(MXNetManifestError) as refused:
        operator.given_manifest()
    assert "(TASK.output), or give the DAG render_template_as_native_obj=True" in str(refused.value)
    assert ": write " not in str(refused.value)
