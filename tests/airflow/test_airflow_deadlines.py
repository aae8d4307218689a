"""What becomes of a job that takes too long, or does not start: on a whole Airflow, with real jobs."""

import pytest
from airflow_scenes import MODES, anywhere
from waiting import eventually

pytestmark = pytest.mark.whole_airflow


@anywhere
def test_a_task_whose_trigger_can_t_see_that_it_takes_too_long_is_ended_by_the_scheduler(live):
    """The trigger looks at the job before the clock, and meets nobody; a minute after the deadline it is ended."""
    scene = live.begin("deferred_timed_later")
    uid = scene.in_progress()
    scene.gateway.down = True
    eventually(lambda: scene.run.states("trigger_timeout - interval '1 minute' < now()") == {("train", -1): (True,)})
    scene.train.wait("scheduled", "queued", "running")
    scene.gateway.down = False
    scene.train.wait("failed")
    log = scene.train.log()
    assert "The trigger ended without an event" in log
    assert "AirflowTaskTimeout" in log
    eventually(lambda: scene.uids() == set())
    assert scene.deletions() == [uid]


@anywhere
@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_takes_too_long_ends_its_job(live, mode):
    scene = live.begin(f"{mode}_timed")
    scene.train.wait("failed")
    eventually(lambda: scene.uids() == set())
    # Not looked for among the jobs: it need not have run in time, nor be there any more.
    assert scene.train.xcom("job_uid") in scene.deletions()
    assert "AirflowTaskTimeout" in scene.train.log()


@pytest.mark.parametrize("mode", MODES)
def test_a_job_whose_image_is_missing_fails_its_task_with_the_cluster_s_reason(live, mode):
    scene = live.begin(f"{mode}_imageless")
    scene.train.wait("failed")
    eventually(lambda: scene.uids() == set())
    log = scene.train.log()
    assert "MXNetJobStartupTimeoutError" in log
    assert "no/such:image" in log


@anywhere
@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_fits_nowhere_fails_its_task_with_the_cluster_s_reason(live, mode):
    scene = live.begin(f"{mode}_crowded")
    scene.train.wait("failed")
    eventually(lambda: scene.uids() == set())
    log = scene.train.log()
    assert "MXNetJobStartupTimeoutError" in log
    assert "Insufficient cpu" in log
