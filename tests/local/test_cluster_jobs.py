"""Jobs on the local cluster, with real MXNet and the real kubectl."""

import json

from jobs import digits_job, gang_job
from waiting import SECONDS

from mxnet_operator.local.images.store import BASE_IMAGE

EPOCHS = ("--epochs", "2")


def watched_states(watch, job):
    """The states that a `kubectl get mxjobs -w` shows of a job, until it has Succeeded."""
    for line in iter(watch.stdout.readline, ""):
        name, *columns = line.split()
        if name == job and len(columns) > 2:  # before its first status it has an age only
            yield columns[0]
            if columns[0] == "Succeeded":
                return


def test_kubectl_applies_watches_follows_and_waits_for_a_real_training(local_cluster):
    manifest = json.dumps(digits_job("digits", *EPOCHS))
    with local_cluster.start_kubectl("get", "mxjobs", "-w", "--no-headers") as watch:
        applied = local_cluster.kubectl("apply", "-f", "-", stdin=manifest)
        assert applied.stdout == "mxjob.kubeflow.org/digits created\n", applied.stderr
        again = local_cluster.kubectl("apply", "-f", "-", stdin=manifest)
        assert again.stdout == "mxjob.kubeflow.org/digits unchanged\n", again.stderr
        local_cluster.wait_for("digits", "Running")
        with local_cluster.start_kubectl("logs", "-f", "digits-worker-0") as follow:
            job = local_cluster.wait_for("digits", "Succeeded")
            log, errors = follow.communicate(timeout=SECONDS)
        assert list(watched_states(watch, "digits"))[-2:] == ["Running", "Succeeded"]
        watch.terminate()

    assert "Epoch[1] Validation-accuracy=" in log, errors
    assert {kind: status["succeeded"] for kind, status in job["status"]["replicaStatuses"].items()} == {
        "Scheduler": 1,
        "Server": 2,
        "Worker": 2,
    }
    worker = local_cluster.get("pod", "digits-worker-0")
    (container,) = worker["status"]["containerStatuses"]
    result = json.loads(container["state"]["terminated"]["message"])
    assert result["epochs"] == 2
    assert 0.8 < result["accuracy"] <= 1
    services = {service["metadata"]["name"] for service in local_cluster.find("services")}
    assert services >= {"digits-mx", "digits-scheduler-0"}
    events = local_cluster.find("events", fields="involvedObject.name=digits")
    assert "MXJobSucceeded" in {event["reason"] for event in events}


def test_a_suspended_gang_gives_up_its_processes_and_comes_back(local_cluster):
    def suspend(value):
        local_cluster.patch("mxjob", "suspended", {"spec": {"runPolicy": {"suspend": value}}})

    local_cluster.create(gang_job("suspended", BASE_IMAGE, ["sleep", "3600"]))
    local_cluster.wait_for("suspended", "Running")
    suspend(True)
    assert "startTime" not in local_cluster.wait_for("suspended", "Suspended")["status"]
    assert local_cluster.pods_of("suspended") == []
    assert local_cluster.processes_of("suspended") == {}
    suspend(False)
    status = local_cluster.wait_for("suspended", "Running")["status"]
    assert status["startTime"]
    assert "restartsCountTowardsMax" not in status
    local_cluster.delete("mxjob", "suspended")
