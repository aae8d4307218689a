"""What becomes of a job when a part of Airflow is killed: on a whole Airflow, with real jobs."""

import os
import signal

import psutil
import pytest
from waiting import eventually

pytestmark = pytest.mark.whole_airflow


def test_a_worker_that_is_killed_is_followed_by_one_that_goes_on_with_its_job(world):
    run = world.begin("waiting")
    uid = run.in_progress()
    os.kill(run.train.look().pid, signal.SIGKILL)
    run.train.wait("running", try_number=2)
    run.succeed()
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.uids()) == (1, {uid})
    assert "which try 1 created, is waited for again" in run.train.log(2)
    assert eventually(run.train.shown_job)["kind"] == "MXJob"


@pytest.mark.exhaustive
def test_a_task_that_airflow_failed_goes_on_with_its_job_when_it_is_cleared(world):
    """Its worker dies in its only try; cleared again while it runs, it gets a new job."""
    run = world.begin("waiting_lone")
    uid = run.in_progress()
    os.kill(run.train.look().pid, signal.SIGKILL)
    run.train.wait("failed")
    run.train.clear()
    run.train.wait("running", try_number=2)
    eventually(lambda: "goes on: Airflow had failed its task" in run.train.log(2))
    assert (run.creations(), run.deletions(), run.uids()) == (1, [], {uid})
    run.train.clear()
    new = run.replaced(uid)
    run.succeed()
    assert run.train.xcom()["uid"] == new


@pytest.mark.exhaustive
@pytest.mark.alone
@pytest.mark.parametrize(
    ("cluster", "how"),
    [
        pytest.param("local", signal.SIGTERM, id="local-stopped"),
        pytest.param("real", signal.SIGKILL, id="real-killed", marks=pytest.mark.kubernetes),
    ],
    indirect=["cluster"],
)
def test_a_triggerer_that_ends_leaves_jobs_and_what_users_asked_for_meanwhile_to_the_next(world, how):
    waiting, ended = world.begin("deferred"), world.begin("deferred")
    uid, other = waiting.in_progress(), ended.in_progress()
    world.airflow.stop("triggerer", how)
    ended.train.set_state("failed")
    assert ended.uids() == {other}
    if how == signal.SIGKILL:
        world.airflow.killed_triggerers_are_given_up_on()
    world.airflow.start("triggerer")
    ended.has_no_job()
    assert ended.deletions() == [other]
    waiting.succeed()
    assert waiting.train.xcom()["uid"] == uid
    assert (waiting.creations(), waiting.deletions()) == (1, [])
    if world.cluster.has_logs:
        assert waiting.train.xcom("metrics") == {"Validation-accuracy": [[0, 0.5], [1, 0.9]]}


@pytest.mark.exhaustive
@pytest.mark.alone
def test_a_scheduler_that_crashes_leaves_the_job_of_its_living_worker_to_the_next_try(world):
    """Airflow resets the task, as after a Clear, and rejects the next heartbeat of the worker that lives on."""
    run = world.begin("waiting")
    uid = run.in_progress()
    worker = run.train.look().pid
    world.airflow.crash("scheduler")
    world.airflow.killed_schedulers_are_given_up_on()
    world.airflow.start("scheduler")
    run.train.wait("running", try_number=2)
    eventually(lambda: not psutil.pid_exists(worker))
    run.succeed()
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])
