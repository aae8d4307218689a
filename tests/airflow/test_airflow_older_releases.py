"""The core of what docs/airflow.md promises, on whole Airflows of older releases: docs/airflow.md says what differs."""

import contextlib
import os
import signal

import pytest
from airflow_releases import OLDER, older_airflow
from airflow_scenes import AT_ONCE, DAGS, MODES, Live
from airflow_together import Together
from waiting import eventually

from mxnet_operator.api.conditions import job_state

pytestmark = pytest.mark.whole_airflow


@pytest.fixture(scope="module", params=OLDER)
def older(request, local_cluster, postgres, tmp_path_factory):
    """A whole Airflow of an older release, which all tests of this file share."""
    home = tmp_path_factory.mktemp("airflow")
    with older_airflow(request.param, home, DAGS[0], postgres) as server:
        server.release = request.param
        yield server


@pytest.fixture(scope="module")
def begun(request, older, local, tmp_path_factory):
    """This release's tests, begun together."""
    items = [item for item in request.session.items if item.path == request.path]
    items = [item for item in items if item.callspec.params["older"] == older.release]
    items = [item for item in items if not item.get_closest_marker("alone")]

    def live_for(_):
        return contextlib.closing(Live(older, local, tmp_path_factory.mktemp("scenes")))

    with Together(items, live_for, AT_ONCE) as together:
        yield together


@pytest.fixture
def live(request, older, local, begun, tmp_path):
    """What a test begins its scenes on; of one that is marked `alone`, when all others have ended."""
    if request.node.get_closest_marker("alone") is None:
        yield begun.of(request.node)
        return
    begun.wait()
    with contextlib.closing(Live(older, local, tmp_path)) as alone:
        yield alone


@pytest.mark.parametrize("mode", MODES)
def test_a_task_returns_the_result_of_its_job_and_shows_its_log(live, mode):
    scene = live.begin(mode)
    uid = scene.in_progress()
    name = scene.jobs()[uid]["metadata"]["name"]
    scene.succeed()
    address = live.job_pages.format(name=name, namespace="default", uid=uid)
    eventually(lambda: scene.train.links() == {"MXJob": address, "MXJob logs": None})
    returned = scene.train.xcom()
    assert (returned["uid"], returned["state"], returned["result"]) == (uid, "Succeeded", {"accuracy": 0.9})
    assert scene.train.xcom("metrics") == {"Validation-accuracy": [[0, 0.5], [1, 0.9]]}
    assert "[worker-0] Epoch[1] Validation-accuracy=0.9" in scene.train.log()
    assert (scene.creations(), scene.deletions()) == (1, [])


@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_fails_fails_its_task_with_its_words_and_a_retry_makes_another(live, mode):
    scene = live.begin(mode)
    first = scene.in_progress()
    scene.end(3)
    eventually(lambda: job_state(scene.jobs()[first]) == "Failed")
    scene.hold()
    eventually(lambda: len(scene.uids()) == 2)
    (second,) = scene.uids() - {first}
    eventually(lambda: job_state(scene.jobs()[second]) == "Running")
    assert scene.succeed().try_number == 2
    assert scene.train.xcom()["uid"] == second
    log = scene.train.log(1)
    assert "MXNetJobFailedError" in log
    assert "exited with code 3" in log


@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_is_cleared_gets_a_new_job_and_the_old_one_goes(live, mode):
    scene = live.begin(mode)
    old = scene.in_progress()
    scene.train.clear()
    eventually(lambda: len(scene.uids() - {old}) == 1 and old not in scene.uids())
    new = scene.in_progress()
    scene.succeed()
    assert scene.train.xcom()["uid"] == new
    assert new not in scene.deletions()
    assert scene.creations() == 2


@pytest.mark.parametrize("state", ["failed", "success"])
@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_a_user_ends_ends_its_job(live, mode, state):
    scene = live.begin(mode)
    uid = scene.in_progress()
    scene.train.set_state(state)
    eventually(lambda: scene.uids() == set())
    assert uid in scene.deletions()
    assert scene.creations() == 1


def test_a_deferred_task_that_takes_too_long_ends_its_job(live):
    scene = live.begin("deferred_timed")
    uid = scene.in_progress()
    scene.train.wait("failed")
    eventually(lambda: scene.uids() == set())
    assert uid in scene.deletions()


def test_a_worker_that_is_killed_is_followed_by_one_that_goes_on_with_its_job(live):
    scene = live.begin("waiting")
    uid = scene.in_progress()
    os.kill(scene.train.look().pid, signal.SIGKILL)
    scene.train.wait("running", try_number=2)
    eventually(lambda: "which try 1 created, is waited for again" in scene.train.log(2))
    scene.succeed()
    assert scene.train.xcom()["uid"] == uid
    assert (scene.creations(), scene.uids()) == (1, {uid})


@pytest.mark.alone
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_triggerer_that_ends_leaves_its_jobs_to_the_next(live, how):
    scene = live.begin("deferred")
    uid = scene.in_progress()
    live.airflow.stop("triggerer", how)
    live.airflow.start("triggerer")
    asked = len(scene.gateway.asked)
    eventually(lambda: len(scene.gateway.asked) > asked)
    scene.succeed()
    assert scene.train.xcom()["uid"] == uid
    assert (scene.creations(), scene.deletions()) == (1, [])
