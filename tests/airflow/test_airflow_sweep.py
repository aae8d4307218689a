"""A sweep's task group, run by the real Airflow with jobs on a real local cluster."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

OWN_DAGS = str(Path(__file__).parent / "dags")


def test_a_sweep_reports_its_best_trial_although_one_fails_and_fails_where_none_has_a_number(airflow, local_cluster):
    code, output = airflow.run(
        "dags", "test", "sweeps", AIRFLOW__CORE__DAGS_FOLDER=OWN_DAGS, KUBECONFIG=str(local_cluster.kubeconfig)
    )
    assert (code != 0, "DagRun failed" in output) == (True, True), output
    query = "select task_id, state from task_instance where dag_id = 'sweeps' and task_id like %s"
    states = dict(airflow.database.rows(query, ["%.best"]))
    assert states == {"found.best": "success", "none.best": "failed", "empty.best": "skipped"}, output
    query = "select value from xcom where dag_id = 'sweeps' and task_id = %s and key = 'return_value'"
    [(best,)] = airflow.database.rows(query, ["found.best"])
    assert (best["index"], best["value"], best["result"]) == (1, 0.1, {"loss": 0.1})
    assert "0.1" in best["trial"]["command"][2]
    [(told,)] = airflow.database.rows(query, ["told"])
    assert told == [True, [None, 0.5, 0.1]]
    assert 'MXNetSweepError: no trial reported a number "loss": 1 of 2 succeeded, and reported ' in output
    assert '"diverged"' in output
