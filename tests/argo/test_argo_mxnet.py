"""The example workflow with real MXNet: Argo, our controller, Kubernetes' scheduler, and our kubelet's processes."""

import asyncio
import contextlib
import json
import re
import tempfile
from pathlib import Path

import pytest
import yaml
from argo_fixtures import node_of, one_runner, outputs_of
from cluster_fixtures import DIGITS, DIGITS_IMAGE
from images_fixtures import SHARED_HOME
from kubernetes_kubelet import KubernetesKubelet
from left_overs import folder_prefix

from mxnet_argo import MXJobSpec
from mxnet_operator.controller.metrics import Metrics
from mxnet_operator.integrations.worker_logs import WorkerLogs
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.resources import NODES, PODS
from mxnet_operator.local.claims import claim_subnet
from mxnet_operator.local.images.store import BASE_IMAGE, ImageStore
from mxnet_operator.local.kubelet.node import NodeOptions

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec"),
    pytest.mark.asyncio(loop_scope="module"),
]

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
TRAIN = Path(__file__).parents[2] / "argo" / "examples" / "train.yaml"


@contextlib.asynccontextmanager
async def kubelet(server):
    """Our kubelet as a node of the cluster; it has the image of examples/digits."""
    with tempfile.TemporaryDirectory(prefix=folder_prefix()) as folder:
        home = Path(folder)
        (SHARED_HOME / "images").mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / "images").symlink_to(SHARED_HOME / "images")
        images = ImageStore(home)
        images.add(DIGITS_IMAGE, DIGITS)
        subnet, claim = claim_subnet(home)
        with claim:
            async with Client(load_credentials(str(server.kubeconfig()))) as client:
                context = server.kubelet_context()
                node = KubernetesKubelet(client, home / "pods", images, subnet, NodeOptions(8, 0), context=context)
                running = asyncio.create_task(node.run())
                try:
                    yield
                finally:
                    running.cancel()
                    await asyncio.wait([running])
                    await client.delete(NODES.path(None, "local"))


async def test_the_example_trains_and_its_accuracy_is_the_steps_result(argo, mxnet_python):
    manifest = yaml.safe_load(TRAIN.read_text())
    manifest["spec"]["arguments"]["parameters"][0]["value"] = "2"
    async with kubelet(argo.server):
        name = await argo.submit(manifest)
        done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded"
    result = json.loads(outputs_of(node_of(done, "digits"))["result"])
    assert result["epochs"] == 2
    assert 0.5 < result["accuracy"] <= 1


FIT = """
import logging, os, time
import mxnet as mx
logging.basicConfig(level=logging.INFO)
def hold(epoch, *_):
    while epoch and not os.path.exists({goes_on!r} + str(epoch)): time.sleep(0.1)
data = mx.nd.random.uniform(shape=(64, 4))
batches = lambda: mx.io.NDArrayIter(data, data[:, 0] > 0.5, 16, label_name="softmax_label")
net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2), name="softmax")
mx.mod.Module(net).fit(batches(), batches(), num_epoch=4, epoch_end_callback=hold)
"""


@pytest.mark.exhaustive
async def test_a_trainings_numbers_are_everywhere_the_same_and_a_poor_trial_is_a_step_that_succeeds(
    argo, mxnet_python, tmp_path
):
    """The script stays in epoch 1, and is stopped in epoch 3 for the accuracy of epoch 2: no accuracy is above 1."""
    goes_on = tmp_path / "goes-on-"
    command = ["python", "-c", FIT.format(goes_on=str(goes_on)), "--num-epochs", "4"]
    early = {"metric": "validation_accuracy", "startEpoch": 2, "below": 1.1}
    spec = MXJobSpec(image=BASE_IMAGE, command=command, servers=0, run_policy={"earlyStopping": early})
    metrics = Metrics()

    def progress(found):
        return [node.get("progress") for node in found[name]["status"]["nodes"].values() if node["type"] == "Pod"]

    def trains(found):
        return found[job["metadata"]["name"]]["status"].get("training", {}).get("epoch") == 1

    await argo.jobs_world.stop()
    await argo.jobs_world.start(integrations=[WorkerLogs(look_every=0.5)], observer=metrics)
    metrics.watch(argo.jobs_world.controller)
    async with kubelet(argo.server), Client(load_credentials(str(argo.server.kubeconfig()))) as client:
        name = await argo.submit(one_runner(spec=spec))
        job = await argo.job(name)
        path = PODS.path(job["metadata"]["namespace"], await argo.poller(name), "log")
        said = ""
        async with contextlib.aclosing(client.stream(path, {"container": "main", "follow": True})) as log:
            async for chunk in log:
                said += chunk.decode()
                if "Epoch[1] Time cost" in said and not goes_on.with_name("goes-on-1").exists():
                    status = (await argo.until("mxjobs", trains))[job["metadata"]["name"]]["status"]
                    await argo.until("workflows", lambda found: progress(found) == ["2/4"])
                    found = await argo.api.ask("GET", argo.path("mxjobs", job["metadata"]["name"]), headers=TABLE)
                    columns = found.ok()["rows"][0]["cells"]
                    exported = metrics.render("")[0].decode()
                    goes_on.with_name("goes-on-1").touch()
                    goes_on.with_name("goes-on-2").touch()
        done = await argo.finished(name)
        ended = (await argo.jobs(name))[job["metadata"]["name"]]["status"]
    logged = {key: re.findall(rf"\[{epoch}\] {key}=([0-9.]+)", said)[0] for epoch, key in SHOWN}
    training = status["training"]
    figures = {each["name"]: float(each["value"]) for each in training["metrics"]}
    assert figures["train_accuracy"] == float(logged["Train-accuracy"])
    assert figures["validation_accuracy"] == float(logged["Validation-accuracy"])
    assert (training["epoch"], training["epochs"], training["progressPercentage"]) == (1, 4, 50)
    assert columns[-3:-1] == [1, 50], "EPOCH and PERCENT of kubectl get -o wide"
    of_job = f'{{job_name="{job["metadata"]["name"]}",job_namespace="{job["metadata"]["namespace"]}"'
    assert f"mxnet_operator_job_epoch{of_job}}} 1.0" in exported
    assert f"mxnet_operator_job_progress_percentage{of_job}}} 50.0" in exported
    for figure, value in figures.items():
        assert f'mxnet_operator_job_metric{of_job},metric="{figure}"}} {value}' in exported

    outputs = outputs_of(node_of(done, "train"))
    accuracy = {each["name"]: each["value"] for each in ended["training"]["metrics"]}["validation_accuracy"]
    assert (done["status"]["phase"], outputs["state"], outputs["result"]) == ("Succeeded", "Succeeded", "")
    assert outputs["message"] == (
        f"MXJob {job['metadata']['name']} was stopped early: validation_accuracy is {accuracy} in epoch 2"
        " (earlyStopping: below 1.1)."
    )
    assert (ended["conditions"][-1]["reason"], ended.get("restarts", 0)) == ("EarlyStopped", 0)


SHOWN = ((1, "Train-accuracy"), (0, "Validation-accuracy"))
"""The newest figures in epoch 1, which is validated after its callback."""
