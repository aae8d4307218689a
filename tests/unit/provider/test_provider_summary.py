"""What a task returns about its job, and where the result in it comes from."""

import pytest

from mxnet_operator.api import names
from mxnet_provider.job.summary import summary


def job(**status):
    return {"metadata": {"name": "digits", "namespace": "default", "uid": "1"}, "status": status}


def worker(message):
    terminated = {"terminated": {"exitCode": 0, "message": message}}
    return {
        "metadata": {
            "name": "digits-worker-0",
            "labels": {names.LABEL_REPLICA_TYPE: "worker", names.LABEL_REPLICA_INDEX: "0"},
        },
        "status": {"containerStatuses": [{"name": "mxnet", "state": terminated}]},
    }


@pytest.mark.parametrize(
    ("kept", "pods", "result"),
    [
        ('{"accuracy": 0.99}', [], {"accuracy": 0.99}),
        ("it went well", [worker("of another attempt")], "it went well"),
        ("", [worker('{"accuracy": 0.98}')], {"accuracy": 0.98}),  # a controller that kept no results
        (None, [worker("0.5")], 0.5),
        (None, [], None),
    ],
)
def test_the_result_is_the_one_in_the_status_and_else_the_one_in_the_pod(kept, pods, result):
    found = job() if kept is None else job(result=kept)
    assert summary(found, pods)["result"] == result


def test_the_volumes_that_keep_files_are_named():
    container = {"name": "mxnet", "volumeMounts": [{"name": "out", "mountPath": "/models"}]}
    volumes = [{"name": "out", "persistentVolumeClaim": {"claimName": "models"}}]
    template = {"spec": {"containers": [container], "volumes": volumes}}
    found = job() | {"spec": {"mxReplicaSpecs": {names.WORKER: {"template": template}}}}
    assert summary(found, [])["files"] == ["claim models at /models"]


def test_of_a_job_on_the_local_cluster_the_command_that_lists_its_files_is_named():
    pod = worker("")
    pod["status"]["containerStatuses"][0]["containerID"] = "process://1/mxnet"
    (said,) = summary(job(), [pod])["files"]
    assert said.endswith("until the job is deleted: mxjob describe -n default digits")


def test_a_task_that_wants_no_result_gets_none():
    assert summary(job(result="0.5"), [worker("0.5")], result_of=None)["result"] is None
