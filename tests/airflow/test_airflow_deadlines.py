"""What becomes of a job that takes too long, or does not start: on a whole Airflow, with real jobs."""

import re

import pytest
from airflow_world import TRIGGER, crosswise

pytestmark = pytest.mark.whole_airflow


@pytest.mark.exhaustive
def test_a_task_whose_trigger_can_t_see_that_it_takes_too_long_is_ended_by_the_scheduler(world):
    """The trigger looks at the job before the clock, and meets nobody; a minute after the deadline it is ended."""
    run = world.begin("deferred_timed")
    run.gateway.down, run.gateway.down_for = True, TRIGGER
    uid = run.the_job()
    run.train.wait("failed")
    log = run.train.log()
    assert "The trigger ended without an event" in log
    assert "AirflowTaskTimeout" in log
    run.has_no_job()
    assert run.deletions() == [uid]


@pytest.mark.sampled
@crosswise
def test_a_task_that_takes_too_long_ends_its_job(world, mode):
    run = world.begin(f"{mode}_timed")
    run.train.wait("failed")
    run.has_no_job()
    # Not looked for among the jobs: it need not have run in time, nor be there any more.
    assert run.train.xcom("job_uid") in run.deletions()
    log = run.train.log()
    assert "AirflowTaskTimeout" in log
    assert re.search(r"Deleted MXJob default/\S+: the execution_timeout of its task is over\.", log)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("dag", "cluster", "words"),
    [
        ("deferred_crowded", "local", "Insufficient cpu"),
        pytest.param("waiting_crowded", "real", "Insufficient cpu", marks=pytest.mark.kubernetes),
        ("waiting_imageless", "local", "no/such:image"),
    ],
    indirect=["cluster"],
)
def test_a_job_that_can_not_start_fails_its_task_with_the_cluster_s_reason(world, dag, words):
    run = world.begin(dag)
    run.train.wait("failed")
    run.has_no_job()
    log = run.train.log()
    assert "MXNetJobStartupTimeoutError" in log
    assert words in log
