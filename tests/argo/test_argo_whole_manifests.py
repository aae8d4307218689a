"""The shipped template that takes a whole MXJob, on a real Argo."""

import asyncio
import json

import pytest
from argo_fixtures import attempts_at, by_template, node_of, outputs_of

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


WRONG = {
    "kind: MXJob": "the manifest is no MXJob as JSON",
    json.dumps({**whole(), "kind": "Deployment"}): "the manifest is of another kind than MXJob",
    json.dumps(whole(namespace="prod")): "the namespace is that of the workflow",
    json.dumps({**whole(), "spec": {**whole()["spec"], "runPolicy": {"suspend": True}}}): "leave runPolicy.suspend out",
    json.dumps({**whole(), "spec": {"mxReplicaSpecs": {"Worker": {"replicas": "two"}}}}): "mxReplicaSpecs",
    json.dumps({**whole(), "spec": {**whole()["spec"], "runPolicies": {}}}): 'unknown field "spec.runPolicies"',
    json.dumps({**whole(), "metdata": {}}): "the manifest has no field metdata",
}
"""Wrong texts for the parameter, and words of the message."""


@pytest.mark.exhaustive
async def test_what_is_no_manifest_fails_the_step_at_once_and_makes_no_job(argo):
    async def ends(text):
        name = await argo.submit(by_template("mxjob-manifest", manifest=text))
        return name, await argo.finished(name)

    for (name, done), words in zip(await asyncio.gather(*map(ends, WRONG)), WRONG.values(), strict=True):
        assert done["status"]["phase"] == "Failed", words
        (attempt,) = attempts_at(done, "manifest")
        assert words in attempt["message"]
        await argo.no_jobs(name)
