"""What templates make of an operator's options, in Airflow's ordinary rendering and in its native one."""

from typing import Any

import pytest
from airflow.sdk import DAG

from mxnet_operator.job import Role
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
def test_so_they_do_in_a_role_and_in_a_manifest(native: bool) -> None:
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


@NATIVE
def test_counts_become_numbers(native: bool) -> None:
    spec = worker_of(rendered(native, image="i", workers="{{ params.workers }}"))
    assert spec["replicas"] == 2


def test_a_template_that_fails_names_what_it_lacks() -> None:
    with pytest.raises(Exception, match="absent"):
        rendered(True, image="i", args=["{{ absent.value }}"])


@NATIVE
def test_what_a_task_returned_is_not_taken_for_a_template(native: bool) -> None:
    """Airflow names the objects that came by `expand`, and renders none of them."""
    values = ["{{ params.rate }}", "20"]
    with DAG("d", schedule=None, render_template_as_native_obj=native):
        operator = MXNetJobOperator(task_id="t", image="{{ params.team }}", args=values)
    seen = {id(values), id(operator.image)}
    operator._do_render_template_fields(operator, ("args", "image"), CONTEXT, operator.get_template_env(), seen)
    assert (operator.args, operator.image) == (values, "{{ params.team }}")
