"""Argo from images, as its own manifests deploy it: a step's init, wait and main are containers of a real kubelet."""

import json

import pytest
from argo_fixtures import by_template, messages_of, node_of, one_runner, outputs_of
from real_node.argo import finished, job_of, submit
from real_node.cheap_gang import BUSYBOX, SERVE
from real_node.images import ARGOEXEC, DIGITS, OPERATOR, WORKFLOW_CONTROLLER, archives
from real_node.node import NODE
from waiting import eventually

from mxnet_argo import MXJobSpec

pytestmark = pytest.mark.node(ARGOEXEC, WORKFLOW_CONTROLLER)

TRAINING = {
    "image": "mxjob/digits:1.0",
    "command": json.dumps(["python", "train.py"]),
    "args": json.dumps(["--epochs", "2", "--kv-store", "dist_sync", "--result", "/dev/termination-log"]),
    "workers": "2",
}


def ended_pod(world, workflow):
    """The one pod in which Argo runs a workflow, once its containers have terminated, which Argo may not wait for."""
    selector = f"workflows.argoproj.io/workflow={workflow},!training.kubeflow.org/job-name"

    def ended():
        (pod,) = world.get("pods", "-l", selector)["items"]
        return pod if pod["status"]["phase"] in {"Succeeded", "Failed"} else None

    return eventually(ended)


def containers_of(pod):
    """Each container's image and status, init containers too."""
    statuses = pod["status"]["initContainerStatuses"] + pod["status"]["containerStatuses"]
    return {each["name"]: each for each in statuses}


def image_id(image):
    """How the kubelet calls an image that was built here."""
    (archive,) = archives([image])
    return f"sha256:{archive.digest}"


@pytest.mark.parametrize(
    ("template", "main", "beside", "parameters"),
    [
        ("mxjob-train", ARGOEXEC, {"init"}, {}),
        ("mxjob-runner", OPERATOR, {"init", "wait"}, {"runner_image": OPERATOR.name}),
    ],
    ids=["step", "runner"],
)
def test_a_shipped_template_trains_and_its_result_is_what_the_container_of_worker_0_wrote(
    argo_world, template, main, beside, parameters
):
    world = argo_world
    name = submit(world, by_template(template, **TRAINING, **parameters))
    job = job_of(world, name)
    world.ended(job, "Succeeded")
    done = finished(world, name)
    step = done["status"]["storedWorkflowTemplateSpec"]["entrypoint"]
    assert done["status"]["phase"] == "Succeeded", messages_of(done, step)

    outputs = outputs_of(node_of(done, step))
    worker = world.pods(job)[f"{job}-worker-0"]["status"]["containerStatuses"][0]
    assert worker["imageID"] == image_id(DIGITS)
    assert (outputs["job"], outputs["state"]) == (job, "Succeeded")
    assert json.loads(outputs["result"]) == json.loads(worker["state"]["terminated"]["message"])
    assert json.loads(outputs["result"])["accuracy"] > 0.5

    pod = ended_pod(world, name)
    assert pod["spec"]["nodeName"] == NODE
    ran = containers_of(pod)
    images = {"main": image_id(main), **dict.fromkeys(beside, image_id(ARGOEXEC))}
    assert {name: each["imageID"] for name, each in ran.items()} == images
    assert {name: each["state"]["terminated"]["exitCode"] for name, each in ran.items()} == dict.fromkeys(ran, 0)


def test_a_terminated_workflow_ends_its_runner_by_exec_which_deletes_the_job(argo_world):
    """Neither the exit handler nor our controller does: this workflow has no handler, and its job stays with it."""
    world = argo_world
    spec = MXJobSpec(image=BUSYBOX, command=SERVE, servers=0)
    name = submit(world, one_runner(cleanup=False, spec=spec, image=OPERATOR.name))
    job = job_of(world, name)
    world.wait(f"mxjob/{job}", "condition=Running")
    world.kubectl("patch", "workflow", name, "--type=merge", "-p", json.dumps({"spec": {"shutdown": "Terminate"}}))
    world.wait(f"mxjob/{job}", "delete")
    assert finished(world, name)["status"]["phase"] == "Failed"
    pod = ended_pod(world, name)
    assert containers_of(pod)["main"]["state"]["terminated"]["exitCode"] == 143
