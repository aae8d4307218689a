"""Restarts, suspension, deadlines and time to live, on real processes and, where it matters, real MXNet."""

import json
import os
import signal

import pytest
from jobs import digits_job, gang_job, worker_job
from waiting import eventually

from mxnet_operator.api.conditions import terminal_message
from mxnet_operator.local.images import BASE_IMAGE

EPOCHS = 12
TOLERANCE = 4 / 360
"""Test images that a resumed run may read worse: its checkpoint has the weights, but not the optimizer's moments."""


def with_checkpoints(job, folder):
    """The job whose pods share a folder of the host at /checkpoints."""
    for spec in job["spec"]["mxReplicaSpecs"].values():
        pod = spec["template"]["spec"]
        pod["volumes"] = [{"name": "checkpoints", "hostPath": {"path": str(folder)}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
    return job


def events_of(cluster, job):
    return [
        (event["reason"], event["message"]) for event in cluster.find("events", fields=f"involvedObject.name={job}")
    ]


def accuracy_of(cluster, job):
    """The accuracy on the test images that a finished digits job has written as its result."""
    (container,) = cluster.get("pod", f"{job}-worker-0")["status"]["containerStatuses"]
    return json.loads(container["state"]["terminated"]["message"])["accuracy"]


@pytest.fixture(scope="module")
def undisturbed_accuracy(local_cluster):
    """What the training comes to when nothing happens to it."""
    local_cluster.create(digits_job("undisturbed", "--epochs", str(EPOCHS)))
    local_cluster.wait_for("undisturbed", "Succeeded")
    return accuracy_of(local_cluster, "undisturbed")


@pytest.mark.exhaustive
@pytest.mark.parametrize("victim", ["worker-1", "server-0", "scheduler-0"])
def test_a_gang_that_loses_a_member_comes_again_goes_on_from_its_checkpoint_and_learns_as_much(
    local_cluster, tmp_path, undisturbed_accuracy, victim
):
    name = f"resume-{victim}"
    job = with_checkpoints(digits_job(name, "--epochs", str(EPOCHS), "--checkpoint-dir", "/checkpoints"), tmp_path)
    for spec in job["spec"]["mxReplicaSpecs"].values():
        spec["restartPolicy"] = "ExitCode"
    local_cluster.create(job)
    eventually(lambda: list(tmp_path.iterdir()))  # an epoch is done
    (process,) = (each for each, pod in local_cluster.processes_of(name).items() if pod == f"{name}-{victim}")
    os.kill(process, signal.SIGKILL)

    status = local_cluster.wait_for(name, "Succeeded")["status"]
    assert (status["restarts"], status["restartsCountTowardsMax"]) == (1, 1)
    restarting = [message for reason, message in events_of(local_cluster, name) if reason == "MXJobRestarting"]
    assert len(restarting) == 1
    assert f"{victim} exited with code 137" in restarting[0]
    pods = local_cluster.pods_of(name)
    assert {pod["metadata"]["labels"]["mxjob.kubeflow.org/attempt"] for pod in pods} == {"1"}
    log = local_cluster.mxjob("logs", name).stdout
    assert "Epoch[0] Validation-accuracy" not in log, "it began anew"
    assert f"Epoch[{EPOCHS - 1}] Validation-accuracy" in log
    reached = accuracy_of(local_cluster, name)
    print(f"{reached} after the loss of {victim}, {undisturbed_accuracy} without")
    assert reached >= undisturbed_accuracy - TOLERANCE


def test_a_permanent_exit_code_is_not_tried_again(local_cluster):
    job = worker_job("permanent", "raise SystemExit(2)")
    job["spec"]["mxReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"
    local_cluster.create(job)
    failed = local_cluster.wait_for("permanent", "Failed")
    assert "worker-0 exited with code 2" in terminal_message(failed)
    assert failed["status"]["restarts"] == 0


def test_the_backoff_limit_ends_it(local_cluster):
    job = worker_job("limited", "raise SystemExit(7)", runPolicy={"backoffLimit": 0})
    job["spec"]["mxReplicaSpecs"]["Worker"]["restartPolicy"] = "OnFailure"
    local_cluster.create(job)
    message = terminal_message(local_cluster.wait_for("limited", "Failed"))
    assert message.startswith("Job limited has failed because it has reached the specified backoff limit (0).")
    assert "worker-0 exited with code 7" in message


def test_a_suspended_gang_gives_up_its_processes_and_comes_back(local_cluster):
    name = "suspended"
    program = "import mxnet as mx; kv = mx.kv.create('dist_sync'); kv._barrier(); import time; time.sleep(3600)"
    local_cluster.create(gang_job(name, BASE_IMAGE, ["python", "-c", program]))
    local_cluster.wait_for(name, "Running")

    def suspend(value):
        local_cluster.patch("mxjob", name, {"spec": {"runPolicy": {"suspend": value}}})

    suspend(True)
    status = local_cluster.wait_for(name, "Suspended")["status"]
    assert "startTime" not in status
    assert local_cluster.pods_of(name) == []
    assert local_cluster.processes_of(name) == {}
    suspend(False)
    status = local_cluster.wait_for(name, "Running")["status"]
    assert status["startTime"]
    assert "restartsCountTowardsMax" not in status
    local_cluster.delete("mxjob", name)


def test_a_script_that_hangs_ends_at_the_deadline_with_nothing_left_running(local_cluster):
    name = "too-slow"
    job = worker_job(name, "import time; time.sleep(3600)", runPolicy={"activeDeadlineSeconds": 2})
    local_cluster.create(job)
    message = terminal_message(local_cluster.wait_for(name, "Failed"))
    assert "active longer than specified deadline" in message
    eventually(lambda: not local_cluster.processes_of(name))


def test_an_image_that_nobody_knows_ends_at_the_progress_deadline(local_cluster):
    name = "no-image"
    job = worker_job(name, "", runPolicy={"progressDeadlineSeconds": 2})
    job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = "no/such:1"
    local_cluster.create(job)
    message = terminal_message(local_cluster.wait_for(name, "Failed"))
    assert "made no progress for 2 s: worker-0 did not start" in message
    assert "mxjob local image add no/such:1" in message


def test_a_finished_job_is_deleted_when_its_time_has_come_and_its_pods_with_it(local_cluster):
    name = "short-lived"
    local_cluster.create(worker_job(name, "print('done')", runPolicy={"ttlSecondsAfterFinished": 1}))
    local_cluster.wait_until("mxjob", name, lambda job: job is None)
    eventually(lambda: not local_cluster.pods_of(name))
