"""What becomes of a job when the run or the DAG of its task changes: on a whole Airflow."""

import pytest
from airflow_world import MODES
from waiting import eventually

from mxnet_operator.api.conditions import job_state

pytestmark = [pytest.mark.exhaustive, pytest.mark.whole_airflow]


def change(world, run, method, body=None):
    """Change the DAG of a run as a user does."""
    world.airflow.ask(method, f"{world.airflow.api}/dags/{run.dag_run.dag_id}", body)


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_takes_longer_than_its_dagrun_timeout_leaves_no_job(world, mode):
    run = world.begin(f"{mode}_limited")
    uid = run.in_progress()
    run.dag_run.began_long_ago()
    run.train.wait("skipped")
    run.has_no_job()
    assert run.deletions() == [uid]


def test_a_dag_that_is_paused_under_its_job_takes_the_result_when_it_goes_on(world):
    run = world.begin("deferred_paused")
    uid = run.in_progress()
    change(world, run, "PATCH", {"is_paused": True})
    run.end()
    eventually(lambda: job_state(run.jobs()[uid]) == "Succeeded")
    run.train.wait("scheduled")
    change(world, run, "PATCH", {"is_paused": False})
    run.train.wait("success")
    assert (run.train.xcom()["uid"], run.creations(), run.deletions()) == (uid, 1, [])


def test_a_dag_that_is_deleted_under_its_job_leaves_none(world):
    """Airflow itself rejects that while a task runs in a worker."""
    run = world.begin("deferred_deleted")
    uid = run.in_progress()
    change(world, run, "DELETE")
    run.has_no_job()
    assert run.deletions() == [uid]
