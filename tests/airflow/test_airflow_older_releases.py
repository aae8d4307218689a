"""The core of what docs/airflow-events.md promises, on whole Airflows of older releases, of which one has Celery."""

import os
import signal

import psutil
import pytest
from airflow_releases import OLDER, older_airflow
from airflow_runs import Task
from airflow_world import DAGS, begun_on
from waiting import eventually

from mxnet_operator.api.conditions import job_state

pytestmark = [pytest.mark.exhaustive, pytest.mark.whole_airflow]
on_the_oldest = pytest.mark.parametrize("older", OLDER[:1], indirect=True)
with_celery = pytest.mark.parametrize("older", OLDER[1:], indirect=True)


@pytest.fixture(scope="module", params=OLDER)
def older(request, local_cluster, postgres, tmp_path_factory):
    """A whole Airflow of an older release, which all tests of this file share."""
    home = tmp_path_factory.mktemp("airflow")
    with older_airflow(request.param, home, DAGS[0], postgres) as server:
        server.release = request.param
        yield server


@pytest.fixture(scope="module")
def begun(request, older, local, tmp_path_factory):
    """The tests on this Airflow, begun together."""
    items = [item for item in request.session.items if item.path == request.path]
    items = [item for item in items if item.callspec.params["older"] == older.release]
    with begun_on(older, {"local": local}, items, tmp_path_factory) as running:
        yield running


def test_a_job_that_fails_is_shown_and_a_retry_returns_the_result_of_another(world):
    run = world.begin("deferred")
    first = run.in_progress()
    run.end(3)
    eventually(lambda: job_state(run.jobs()[first]) == "Failed")
    run.hold()
    second = run.in_progress()
    name = run.jobs()[second]["metadata"]["name"]
    assert run.succeed().try_number == 2
    address = world.job_pages.format(name=name, namespace="default", uid=second)
    eventually(lambda: run.train.links() == {"MXJob": address, "MXJob logs": None})
    returned = run.train.xcom()
    assert (returned["uid"], returned["state"], returned["result"]) == (second, "Succeeded", {"accuracy": 0.9})
    assert run.train.xcom("metrics") == {"Validation-accuracy": [[0, 0.5], [1, 0.9]]}
    assert eventually(run.train.shown_job)["metadata"]["name"] == returned["name"]
    assert "[worker-0] Epoch[1] Validation-accuracy=0.9" in run.train.log(2)
    failed = run.train.log(1)
    assert "MXNetJobFailedError" in failed
    assert "exited with code 3" in failed
    assert (run.creations(), run.deletions()) == (2, [])


def test_a_task_that_is_cleared_gets_a_new_job_and_the_old_one_goes(world):
    run, old = world.interrupt("deferred", Task.clear)
    new = run.replaced(old)
    run.succeed()
    assert run.train.xcom()["uid"] == new
    assert new not in run.deletions()
    assert run.creations() == 2


@pytest.mark.parametrize(("mode", "state"), [("deferred", "failed"), ("waiting", "success")])
def test_a_task_that_a_user_ends_ends_its_job(world, mode, state):
    run, uid = world.interrupt(mode, lambda task: task.set_state(state))
    run.has_no_job()
    assert uid in run.deletions()
    assert run.creations() == 1


@on_the_oldest
def test_a_deferred_task_that_takes_too_long_ends_its_job(world):
    run = world.begin("deferred_timed")
    run.train.wait("failed")
    run.has_no_job()
    assert run.train.xcom("job_uid") in run.deletions()


def test_a_worker_that_is_killed_is_followed_by_one_that_goes_on_with_its_job(world):
    run = world.begin("waiting")
    uid = run.in_progress()
    os.kill(run.train.look().pid, signal.SIGKILL)
    run.train.wait("running", try_number=2)
    eventually(lambda: "which try 1 created, is waited for again" in run.train.log(2))
    run.succeed()
    assert run.train.xcom()["uid"] == uid
    assert "[worker-0] Epoch[1] Validation-accuracy=0.9" in run.train.log(2)
    assert (run.creations(), run.uids()) == (1, {uid})


@pytest.mark.alone
def test_a_triggerer_that_ends_leaves_its_jobs_to_the_next(world):
    run = world.begin("deferred")
    uid = run.in_progress()
    world.airflow.stop("triggerer")
    world.airflow.start("triggerer")
    asked = len(run.gateway.asked)
    eventually(lambda: len(run.gateway.asked) > asked)
    run.succeed()
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])


@with_celery
@pytest.mark.alone
def test_a_celery_worker_that_is_stopped_waits_for_its_task(world):
    """A warm shutdown: the signal goes to the worker's main process alone."""
    run = world.begin("waiting")
    uid = run.in_progress()
    log = world.airflow.home / "worker.log"
    os.kill(world.airflow.pid("worker"), signal.SIGTERM)
    eventually(lambda: "Warm shutdown" in log.read_text())
    assert run.succeed().try_number == 1
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])
    world.airflow.stop("worker")
    world.airflow.start("worker")


@with_celery
@pytest.mark.alone
def test_a_celery_worker_whose_processes_are_all_signalled_or_killed_leaves_its_job_to_the_retry(world):
    """Signalled as by systemd, which signals a unit's whole control group unless it is told otherwise."""
    run = world.begin("waiting")
    uid = run.in_progress()
    pid = run.train.look().pid
    world.airflow.send("worker", signal.SIGTERM)
    eventually(lambda: not psutil.pid_exists(pid))
    world.airflow.stop("worker")
    world.airflow.start("worker")
    run.train.wait("running", try_number=2)
    eventually(lambda: "which try 1 created, is waited for again" in run.train.log(2))
    world.airflow.stop("worker", signal.SIGKILL)
    world.airflow.start("worker")
    run.train.is_given_up_on()
    run.train.wait("running", try_number=3)
    assert run.succeed().try_number == 3
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])
