"""The shipped DAG by the real Airflow, its job in real containers."""

import json
import shutil

import pytest
from real_node.images import DIGITS, ROOT

CONNECTION = "AIRFLOW_CONN_KUBERNETES_DEFAULT"
DAG = ROOT / "dags" / "train_digits.py"


@pytest.fixture
def dags(tmp_path):
    """A checkout's folder of DAGs with the shipped one alone."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    folder = tmp_path / "dags"
    folder.mkdir()
    return folder


def test_the_shipped_dag_trains_and_returns_the_accuracy_that_its_containers_reached(airflow, world, dags, tmp_path):
    shutil.copy(DAG, dags)
    connection = {"conn_type": "kubernetes", "extra": {"namespace": world.namespace}}
    variables = {CONNECTION: json.dumps(connection), "MXNET_REPORT": str(tmp_path / "report.html")}
    code, output = airflow.run("dags", "test", "train_digits", AIRFLOW__CORE__DAGS_FOLDER=str(dags), **variables)
    assert code == 0, output

    returned = airflow.returned("train_digits", "train")
    job, pods = world.get("mxjob", returned["name"]), world.pods(returned["name"])
    assert job["metadata"]["uid"] == returned["uid"]
    assert job["status"]["state"] == "Succeeded"
    assert returned["result"]["accuracy"] >= 0.98
    assert airflow.returned("train_digits", "check_accuracy") == returned["result"]["accuracy"]

    worker = pods[f"{returned['name']}-worker-0"]["status"]["containerStatuses"][0]
    assert json.loads(worker["state"]["terminated"]["message"]) == returned["result"]
    assert worker["image"] == DIGITS.name
    assert {each["pod"]: each["exit_code"] for each in returned["replicas"]} == dict.fromkeys(pods, 0)
    assert any(line.startswith("[worker-0] ") and "Epoch[19]" in line for line in output.splitlines())
