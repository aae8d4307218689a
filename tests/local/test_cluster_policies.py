"""Suspension, and the progress deadline of an image that nobody knows, on real processes without MXNet."""

from jobs import gang_job, worker_job

from mxnet_operator.api.conditions import terminal_message
from mxnet_operator.local.images.store import BASE_IMAGE


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


def test_an_image_that_nobody_knows_ends_at_the_progress_deadline(local_cluster):
    name = "no-image"
    job = worker_job(name, "", runPolicy={"progressDeadlineSeconds": 2})
    job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = "no/such:1"
    local_cluster.create(job)
    message = terminal_message(local_cluster.wait_for(name, "Failed"))
    assert "made no progress for 2 s: worker-0 did not start" in message
    assert "mxjob local image add no/such:1" in message
