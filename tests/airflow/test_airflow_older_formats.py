"""A DAG whose manifests are of older formats, run by the real Airflow on a real local cluster."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

DAGS = str(Path(__file__).parent / "dags")


def test_jobs_of_older_formats_run_as_v1_and_leave_their_results(airflow, local_cluster):
    code, output = airflow.run(
        *("dags", "test", "older_formats"),
        AIRFLOW__CORE__DAGS_FOLDER=DAGS,
        KUBECONFIG=str(local_cluster.kubeconfig),
    )
    assert code == 0, output
    query = "select task_id, value from xcom where dag_id = 'older_formats' and key = 'return_value'"
    returned = dict(airflow.database.rows(query))
    assert {task: job["result"] for task, job in returned.items()} == {
        "list_format": "list_format",
        "v1beta1": "v1beta1",
    }
    for job in returned.values():
        created = local_cluster.get("mxjob", job["name"])
        assert (created["metadata"]["uid"], created["apiVersion"]) == (job["uid"], "kubeflow.org/v1")
        assert "replicaSpecs" not in created["spec"]
