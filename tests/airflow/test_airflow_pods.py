"""What KubernetesExecutor does to the pod that waits for a job: docs/airflow-events.md has it in a table."""

import os
import signal
from pathlib import Path

import pytest
from airflow_executors import WORKERS
from waiting import eventually

pytestmark = [pytest.mark.exhaustive, pytest.mark.whole_airflow]


def worker_pods(world, run):
    """The pods that run the tasks of a run."""
    selector = f"dag_id={run.dag_run.dag_id},run_id={run.dag_run.selector.partition('=')[2].partition(',')[0]}"
    return [pod.metadata.name for pod in world.cluster.core.list_namespaced_pod(WORKERS, label_selector=selector).items]


def test_a_task_that_is_deferred_by_a_pod_returns_the_result_in_another(world):
    run = world.begin("deferred_by_pod")
    uid = run.in_progress()
    run.succeed()
    returned = run.train.xcom()
    assert (returned["uid"], returned["state"], returned["result"]) == (uid, "Succeeded", {"accuracy": 0.9})
    assert "[worker-0] Epoch[1] Validation-accuracy=0.9" in run.train.log()
    assert (run.creations(), run.deletions()) == (1, [])


def test_a_task_that_a_user_ends_ends_its_job(world):
    run, uid = world.interrupt("waiting_in_pod", lambda task: task.set_state("failed"))
    run.has_no_job()
    assert uid in run.deletions()
    assert run.creations() == 1


def test_a_worker_s_pod_that_is_deleted_and_one_that_dies_leave_their_job_to_the_retry(world):
    """It dies as for want of memory: the container's first process is killed, and all others go with it."""
    run = world.begin("waiting_in_pod")
    uid = run.in_progress()
    (pod,) = worker_pods(world, run)
    world.cluster.core.delete_namespaced_pod(pod, WORKERS)
    worker = run.train.wait("running", try_number=2).pid
    eventually(lambda: "which try 1 created, is waited for again" in run.train.log(2))
    os.kill(int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
    run.train.wait("running", try_number=3)
    assert run.succeed().try_number == 3
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])


def test_a_worker_s_process_that_is_killed_is_followed_by_a_pod_that_goes_on_with_its_job(world):
    """Its pod ends well all the same, so only the heartbeat tells."""
    run = world.begin("waiting_in_pod")
    uid = run.in_progress()
    os.kill(run.train.look().pid, signal.SIGKILL)
    eventually(lambda: worker_pods(world, run) == [])
    run.train.is_given_up_on()
    run.train.wait("running", try_number=2)
    run.succeed()
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.uids()) == (1, {uid})
