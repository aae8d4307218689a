"""What tasks make of jobs that fail or go away: on a whole Airflow, with real jobs."""

import pytest
from airflow_world import MODES
from waiting import eventually

from mxnet_operator.api.conditions import job_state

pytestmark = pytest.mark.whole_airflow


@pytest.mark.sampled
@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_fails_is_shown_and_a_retry_makes_another(world, mode):
    run = world.begin(mode)
    old = run.in_progress()
    run.end(3)
    eventually(lambda: job_state(run.jobs()[old]) == "Failed")
    run.hold()
    new = run.in_progress()
    assert run.succeed().try_number == 2
    log = run.train.log(1)
    assert "MXNetJobFailedError" in log
    assert "exited with code 3" in log
    assert run.train.xcom()["uid"] == new
    assert run.uids() == {old, new}


@pytest.mark.exhaustive
def test_a_job_that_is_gone_when_the_task_resumes_has_succeeded_all_the_same(world):
    run = world.begin("deferred_ttl")
    run.in_progress()
    run.succeed()
    assert run.train.xcom()["result"] == {"accuracy": 0.9}
    run.has_no_job()
