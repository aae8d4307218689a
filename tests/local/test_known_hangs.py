"""Jobs that would hang without a failed process: what they say, and how they end, with real MXNet."""

import json

import pytest
from jobs import gang_job
from waiting import eventually

from mxnet_operator.api.conditions import terminal_message
from mxnet_operator.local.images.store import BASE_IMAGE
from mxnet_operator.plan.success import WORDS

ALONE = ["python", "-c", "import mxnet as mx; print('sum', mx.nd.ones(3).sum().asscalar())"]
TOGETHER = ["python", "-c", "import mxnet as mx; kv = mx.kv.create('dist_sync'); kv._barrier()"]


def condition(job, condition_type):
    conditions = job.get("status", {}).get("conditions", ())
    return next((c for c in conditions if (c["type"], c["status"]) == (condition_type, "True")), None)


def warnings(cluster, job, reason):
    events = cluster.find("events", fields=f"involvedObject.name={job},reason={reason}")
    return [event["message"] for event in events if event["type"] == "Warning"]


@pytest.mark.exhaustive
def test_what_can_be_known_to_hang_says_so_and_ends(local_cluster, tmp_path):
    """Both take a minute, so they are one test: neither waits for the other."""
    without_servers = gang_job("shells", BASE_IMAGE, TOGETHER)
    for replica_type in ("Scheduler", "Server"):
        spec = without_servers["spec"]["mxReplicaSpecs"][replica_type]
        spec["template"]["spec"]["containers"] = [{"name": "mxnet", "image": BASE_IMAGE, "command": ["true"]}]
    without_servers["spec"]["runPolicy"] = {"progressDeadlineSeconds": 75}
    local_cluster.create(without_servers)
    manifest = tmp_path / "alone.json"
    manifest.write_text(json.dumps(gang_job("alone", BASE_IMAGE, ALONE)))
    with local_cluster.start_mxjob("run", "-f", str(manifest)) as run:
        said = eventually(lambda: condition(local_cluster.get("mxjob", "shells"), "ServersExited"))["message"]
        assert said == (
            "scheduler-0, server-0 exited with code 0 before any training could begin: worker-0, worker-1 probably wait"
            " for ever. Check the command and the image of the Scheduler and Server."
        )
        wide = local_cluster.mxjob("get", "shells", "-o", "wide").stdout
        assert said in wide
        _, shown = run.communicate()
    assert run.returncode == 0, shown
    assert f"waiting: All Workers exited with code 0 and scheduler-0 goes on: {WORDS}" in shown
    done = local_cluster.get("mxjob", "alone")
    assert terminal_message(done) == (
        "MXJob alone is successfully completed. Scheduler-0 went on for 60 s after the last Worker and is stopped: "
        + WORDS
    )
    assert terminal_message(done) in shown
    assert len(warnings(local_cluster, "alone", "SchedulerStillRunning")) == 1
    eventually(lambda: local_cluster.processes_of("alone") == {})

    failed = terminal_message(local_cluster.wait_for("shells", "Failed"))
    assert failed == f"mxjob shells is failed because it made no progress for 75 s: {said}"
    assert warnings(local_cluster, "shells", "ServersExited") == [said]
    eventually(lambda: local_cluster.processes_of("shells") == {})
