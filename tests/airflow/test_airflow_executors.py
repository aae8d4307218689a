"""What other executors than LocalExecutor do to the worker that waits for a job: docs/airflow.md has it in a table."""

import contextlib
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from airflow_executors import WORKERS, celery_executor_airflow, kubernetes_executor_airflow
from airflow_scenes import AT_ONCE, DAGS, MODES, Live
from airflow_together import Together
from waiting import eventually

pytestmark = pytest.mark.whole_airflow


@pytest.fixture(scope="module", params=["kubernetes", "celery"])
def executor(request, local_cluster, postgres, tmp_path_factory):
    """A whole Airflow with this executor, which all its tests share."""
    given = tmp_path_factory.mktemp("airflow"), DAGS[0], postgres
    if request.param == "celery":
        airflow = celery_executor_airflow(*given)
    else:
        airflow = kubernetes_executor_airflow(*given, local_cluster)
    with airflow as server:
        server.executor = request.param
        yield server


with_celery = pytest.mark.parametrize("executor", ["celery"], indirect=True)
with_kubernetes = pytest.mark.parametrize("executor", ["kubernetes"], indirect=True)


@pytest.fixture(scope="module")
def begun(request, executor, local, tmp_path_factory):
    """This executor's tests, begun together."""
    items = [item for item in request.session.items if item.path == request.path]
    items = [item for item in items if item.callspec.params["executor"] == executor.executor]
    items = [item for item in items if not item.get_closest_marker("alone")]

    def live_for(_):
        return contextlib.closing(Live(executor, local, tmp_path_factory.mktemp("scenes")))

    with Together(items, live_for, AT_ONCE) as together:
        yield together


@pytest.fixture
def live(request, executor, local, begun, tmp_path):
    """What a test begins its scenes on; of one that is marked `alone`, when all others have ended."""
    if request.node.get_closest_marker("alone") is None:
        yield begun.of(request.node)
        return
    begun.wait()
    with contextlib.closing(Live(executor, local, tmp_path)) as alone:
        yield alone


@pytest.mark.parametrize("mode", MODES)
def test_a_task_returns_the_result_of_its_job_and_shows_its_log(live, mode):
    scene = live.begin(mode)
    uid = scene.in_progress()
    scene.succeed()
    returned = scene.train.xcom()
    assert (returned["uid"], returned["state"], returned["result"]) == (uid, "Succeeded", {"accuracy": 0.9})
    assert "[worker-0] Epoch[1] Validation-accuracy=0.9" in scene.train.log()
    assert (scene.creations(), scene.deletions()) == (1, [])


@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_a_user_ends_ends_its_job(live, mode):
    scene = live.begin(mode)
    uid = scene.in_progress()
    scene.train.set_state("failed")
    eventually(lambda: scene.uids() == set())
    assert uid in scene.deletions()
    assert scene.creations() == 1


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


def test_a_worker_that_is_killed_is_followed_by_one_that_goes_on_with_its_job(live):
    scene = live.begin("waiting")
    uid = scene.in_progress()
    os.kill(scene.train.look().pid, signal.SIGKILL)
    if live.airflow.executor == "kubernetes":  # the pod ends well all the same, so only the heartbeat tells
        eventually(lambda: worker_pods(live, scene) == [])
        scene.train.is_given_up_on()
    scene.train.wait("running", try_number=2)
    eventually(lambda: "which try 1 created, is waited for again" in scene.train.log(2))
    scene.succeed()
    assert scene.train.xcom()["uid"] == uid
    assert (scene.creations(), scene.uids()) == (1, {uid})


def deliveries(log, scene):
    """How often each message for a scene's task was delivered, in the order of the tries."""
    found = re.findall(r"\[([0-9a-f-]{36})\] Executing workload in Celery: (.*)", log)
    return list(Counter(message for message, workload in found if scene.run.run_id in workload).values())


@with_celery
def test_a_message_that_is_delivered_again_starts_nothing_while_its_task_runs(live):
    scene = live.begin("waiting")
    uid = scene.in_progress()
    log = live.airflow.home / "worker.log"
    eventually(lambda: deliveries(log.read_text(), scene) > [1])
    assert scene.succeed().try_number == 1
    assert scene.train.xcom()["uid"] == uid
    assert (scene.creations(), scene.deletions()) == (1, [])


@with_celery
@pytest.mark.alone
def test_a_worker_that_is_stopped_waits_for_its_task(live):
    """A warm shutdown: the signal goes to the worker's main process alone."""
    scene = live.begin("waiting")
    uid = scene.in_progress()
    log = live.airflow.home / "worker.log"
    os.kill(live.airflow.pid("worker"), signal.SIGTERM)
    eventually(lambda: "Warm shutdown" in log.read_text())
    assert scene.succeed().try_number == 1
    assert scene.train.xcom()["uid"] == uid
    assert (scene.creations(), scene.deletions()) == (1, [])
    live.airflow.stop("worker")
    live.airflow.start("worker")


@with_celery
@pytest.mark.alone
def test_a_worker_whose_processes_are_all_signalled_ends_its_job_and_a_retry_makes_another(live):
    """As systemd does with a unit's control group unless it is told otherwise."""
    scene = live.begin("waiting")
    old = scene.in_progress()
    live.airflow.send("worker", signal.SIGTERM)
    eventually(lambda: old not in scene.uids())
    live.airflow.stop("worker")
    live.airflow.start("worker")
    eventually(lambda: len(scene.uids() - {old}) == 1)
    new = scene.in_progress()
    assert scene.succeed().try_number == 2
    assert scene.train.xcom()["uid"] == new
    assert scene.deletions() == [old]


@with_celery
@pytest.mark.alone
def test_a_worker_that_is_killed_with_its_pool_leaves_its_job_to_the_retry(live):
    scene = live.begin("waiting")
    uid = scene.in_progress()
    log = live.airflow.home / "worker.log"
    live.airflow.stop("worker", signal.SIGKILL)
    live.airflow.start("worker")
    scene.train.is_given_up_on()
    scene.train.wait("running", try_number=2)
    eventually(lambda: "which try 1 created, is waited for again" in scene.train.log(2))
    eventually(lambda: deliveries(log.read_text(), scene)[0] > 1)
    assert scene.succeed().try_number == 2
    assert scene.train.xcom()["uid"] == uid
    assert (scene.creations(), scene.deletions()) == (1, [])


def worker_pods(live, scene):
    """The pods that run the tasks of a scene."""
    selector = f"dag_id={scene.run.dag_id},run_id={scene.run.selector.partition('=')[2].partition(',')[0]}"
    return [pod.metadata.name for pod in live.site.core.list_namespaced_pod(WORKERS, label_selector=selector).items]


def delete_worker(live, scene, **options):
    """Delete the pod that runs the task of a scene."""
    (pod,) = worker_pods(live, scene)
    live.site.core.delete_namespaced_pod(pod, WORKERS, body=options)


@with_kubernetes
def test_a_worker_s_pod_that_is_deleted_ends_its_job_and_a_retry_makes_another(live):
    scene = live.begin("waiting")
    old = scene.in_progress()
    delete_worker(live, scene)
    eventually(lambda: len(scene.uids() - {old}) == 1 and old not in scene.uids())
    new = scene.in_progress()
    assert scene.succeed().try_number == 2
    assert scene.train.xcom()["uid"] == new
    assert scene.deletions() == [old]


@with_kubernetes
def test_a_worker_s_pod_that_is_deleted_at_once_leaves_one_job_to_the_retry(live):
    """The kubelet gives such a pod two seconds: `on_kill` deletes the job within them, or the retry goes on with it."""
    scene = live.begin("waiting")
    old = scene.in_progress()
    delete_worker(live, scene, gracePeriodSeconds=0)
    scene.train.wait("running", try_number=2)
    eventually(lambda: "MXJob default/" in scene.train.log(2))
    uid = scene.in_progress()
    assert scene.succeed().try_number == 2
    assert scene.train.xcom()["uid"] == uid
    assert scene.uids() == {uid}
    assert scene.deletions() == ([] if uid == old else [old])


@with_kubernetes
def test_a_worker_s_pod_that_dies_is_followed_by_one_that_goes_on_with_its_job(live):
    """As for want of memory: the container's first process is killed, and all others go with it."""
    scene = live.begin("waiting")
    uid = scene.in_progress()
    supervisor = Path(f"/proc/{scene.train.look().pid}/stat").read_text().rpartition(")")[2].split()[1]
    os.kill(int(supervisor), signal.SIGKILL)
    scene.train.wait("running", try_number=2)
    eventually(lambda: "which try 1 created, is waited for again" in scene.train.log(2))
    scene.succeed()
    assert scene.train.xcom()["uid"] == uid
    assert (scene.creations(), scene.uids()) == (1, {uid})
