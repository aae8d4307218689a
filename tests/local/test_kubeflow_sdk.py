"""The last official Python SDK, kubeflow-training 1.8.1, against this controller, with pods that run.

It runs in an environment of its own, as it needs a Kubernetes client older than ours.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from cluster_fixtures import DIGITS_IMAGE
from guarded_program import GuardedProgram
from locked_python import locked_python
from waiting import SECONDS, eventually

from mxnet_operator.local.images.uv_process import clean_environment

LIFE_OF_A_JOB = Path(__file__).parents[1] / "tools" / "kubeflow-training" / "life_of_a_job.py"
NAMESPACE = "kubeflow-sdk"
POD_NAMES = ["sdk-scheduler-0", "sdk-server-0", "sdk-worker-0", "sdk-worker-1"]


def life_of_a_job(kubeconfig, *args):
    """What the SDK saw of a job from its creation to its deletion; the arguments are life_of_a_job.py's."""
    environment = clean_environment(os.environ) | {"KUBECONFIG": str(kubeconfig)}
    script = [str(locked_python("kubeflow-training")), str(LIFE_OF_A_JOB), *args]
    with GuardedProgram(script, env=environment, stdout=subprocess.PIPE) as process:
        output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    return json.loads(output.splitlines()[-1])


@pytest.mark.exhaustive
def test_the_sdk_follows_a_training_from_its_creation_to_its_deletion(local_cluster):
    # Of its own: the SDK can't read a list with a job that has no runPolicy, which other tests' jobs have not.
    local_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    script = ("python", "train.py", "--kv-store", "dist_sync", "--epochs", "1")
    seen = life_of_a_job(local_cluster.kubeconfig, "--namespace", NAMESPACE, "sdk", DIGITS_IMAGE, *script)
    assert seen["running"][-1] == "Running"
    assert seen["conditions"] == {"Created": "True", "Running": "False", "Succeeded": "True"}
    states = ("created", "still running", "restarting", "succeeded", "failed")
    assert [seen[each] for each in states] == [True, False, False, True, False]
    assert seen["replica statuses"] == {"Scheduler": 1, "Server": 1, "Worker": 2}
    assert seen["took"] > 0
    assert seen["workers asked for"] == 2
    assert "sdk" in seen["listed"]
    assert (seen["pods"], seen["masters"], seen["worker 1"]) == (POD_NAMES, ["sdk-server-0"], ["sdk-worker-1"])
    assert sorted(seen["logs"]) == ["sdk-worker-0", "sdk-worker-1"]
    assert all("Epoch[0] Validation-accuracy=" in log for log in seen["logs"].values())
    assert any("successfully completed" in event for event in seen["events"]["mxjob/sdk"])
    assert "Validation-accuracy=" in seen["followed"]["sdk-worker-0"]
    assert seen["labels"] == {"team": "vision"}
    local_cluster.wait_until("mxjob", "sdk", lambda job: job is None, NAMESPACE)
    eventually(lambda: local_cluster.find("pods", NAMESPACE) == [])
