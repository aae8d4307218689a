"""Restarts, suspension, deadlines and time to live, on real processes without MXNet."""

from jobs import gang_job, worker_job
from waiting import eventually

from mxnet_operator.api.conditions import terminal_message
from mxnet_operator.local.images import BASE_IMAGE


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
    local_cluster.create(gang_job(name, BASE_IMAGE, ["sleep", "3600"]))
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
