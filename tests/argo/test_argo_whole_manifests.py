"""The shipped template that takes a whole MXJob, on a real Argo."""

import json

import pytest
from argo_fixtures import by_template, node_of, outputs_of

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec"),
    pytest.mark.asyncio(loop_scope="module"),
]


def whole(**metadata):
    container = {"name": "mxnet", "image": "i", "command": ["sh", "-c", 'echo $HOME {{x}} "quoted"']}
    worker = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": metadata,
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {"Worker": worker}, "runPolicy": {"backoffLimit": 1}},
    }


async def test_a_whole_manifest_is_a_job_with_its_names_labels_and_fields(argo):
    given = whole(name="digits", namespace="ml", labels={"team": "vision"}, annotations={"note": "a {b} c"})
    given["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"][2] = "echo $HOME"
    name = await argo.submit(by_template("mxjob-manifest", manifest=json.dumps(given)))
    job = await argo.job(name)
    assert job["metadata"]["name"].startswith("digits-")
    assert job["metadata"]["labels"]["team"] == "vision"
    assert job["metadata"]["annotations"]["note"] == "a {b} c"
    assert job["metadata"]["annotations"]["mxjob.kubeflow.org/delete-with-workflow"] == "true"
    assert job["spec"]["runPolicy"]["backoffLimit"] == 1
    assert job["spec"]["runPolicy"]["activeDeadlineSeconds"] == 86400
    (container,) = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["command"] == ["sh", "-c", "echo $HOME"]
    await argo.end(job, message="0.5")
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded"
    assert outputs_of(node_of(done, "manifest"))["result"] == "0.5"
