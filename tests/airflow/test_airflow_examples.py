"""The example DAGs besides train_digits, run by the real Airflow on a real local cluster."""

import json
from pathlib import Path

import pytest
from builders import make_mxjob
from cluster_fixtures import EXAMPLES
from controller_fixtures import submitted

pytestmark = pytest.mark.exhaustive

DAGS = str(Path(__file__).resolve().parents[2] / "dags")


def run(airflow, cluster, dag_id, *, environment=None, **conf):
    return airflow.run(
        "dags",
        "test",
        dag_id,
        "--conf",
        json.dumps(conf),
        **{"AIRFLOW__CORE__DAGS_FOLDER": DAGS, "KUBECONFIG": str(cluster.kubeconfig), **(environment or {})},
    )


def xcoms(airflow, dag_id, key="return_value"):
    """What the tasks of a DAG have returned, by task and map index."""
    query = "select task_id, map_index, value from xcom where dag_id = %s and key = %s"
    return {(task, index): value for task, index, value in airflow.database.rows(query, [dag_id, key])}


@pytest.fixture
def data_job(local_cluster):
    """The job that prepares the data, which has succeeded; its name."""
    builder = make_mxjob("prepare-digits").worker(1, image="mxjob/mxnet:1.9.1", command=["true"])
    local_cluster.create(submitted(builder))
    local_cluster.wait_for("prepare-digits", "Succeeded")
    return "prepare-digits"


def test_the_nightly_training_waits_for_its_data_and_tells_of_its_failure(airflow, local_cluster, data_job):
    code, output = run(airflow, local_cluster, "nightly_digits", data_job=data_job, epochs=-1)
    assert code != 0, output
    assert f"MXJob default/{data_job} is Succeeded." in output
    assert "PAGE: nightly_digits.train failed" in output
    assert "exited with code 2" in output


@pytest.fixture
def tuning_cluster(local_cluster, tvm_python):
    """The cluster with the image of examples/tune."""
    folder = str(EXAMPLES / "tune")
    added = local_cluster.mxjob("local", "image", "add", "mxjob/tune:1.0", folder, "--base", "mxjob/tvm:0.27")
    assert added.returncode == 0, added.stderr
    return local_cluster


def test_what_was_tuned_and_what_was_trained_are_deployed_together(airflow, tuning_cluster, tmp_path):
    database, release = tmp_path / "database", tmp_path / "release.json"
    conf = {"trials": 3, "database": str(database), "epochs": 2, "required_accuracy": 0.5}
    code, output = run(airflow, tuning_cluster, "deploy_digits", environment={"MXNET_RELEASE": str(release)}, **conf)
    assert code == 0, output
    found = xcoms(airflow, "deploy_digits")
    tuned, trained = found["tune", -1], found["train", -1]
    assert trained["started_at"] >= tuned["completed_at"]
    assert "Trial 3 of 3" in output
    written = json.loads(release.read_text())
    assert written == found["deploy", -1]
    assert (written["model"]["uid"], written["program"]["uid"]) == (trained["uid"], tuned["uid"])
    assert written["program"]["latency_ms"] == tuned["result"]["tuned_ms"]
    assert (written["program"]["trials"], written["program"]["artifact_uri"]) == (
        3,
        (database / "tuned.tar").as_uri(),
    )
    assert (database / "tuned.tar").stat().st_size > 0
