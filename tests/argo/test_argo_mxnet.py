"""The example workflow with real MXNet: Argo, our controller, Kubernetes' scheduler, and our kubelet's processes."""

import asyncio
import contextlib
import json
import tempfile
from pathlib import Path

import pytest
import yaml
from argo_fixtures import node_of, one_runner, outputs_of
from cluster_fixtures import DIGITS, DIGITS_IMAGE
from images_fixtures import SHARED_HOME
from jobs import waits_for
from left_overs import folder_prefix

from mxnet_argo import MXJobSpec
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.resources import NODES, PODS
from mxnet_operator.local.claims import claim_subnet
from mxnet_operator.local.images import BASE_IMAGE, ImageStore
from mxnet_operator.local.kubelet.kubelet import Kubelet

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec"),
    pytest.mark.asyncio(loop_scope="module"),
]

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
                node = Kubelet(client, home / "pods", images, subnet, cpus=8, gpus=0, kubernetes=context)
                running = asyncio.create_task(node.run())
                try:
                    yield
                finally:
                    await node.stop()
                    await running
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


@pytest.mark.exhaustive
async def test_the_log_and_the_progress_of_a_training_are_the_runners_while_it_trains(argo, mxnet_python, tmp_path):
    goes_on = tmp_path / "goes-on"
    trains = f"print('Epoch[0] Train-accuracy=0.5', flush=True)\n{waits_for(goes_on)}"
    command = ["python", "-c", trains, "--num-epochs", "4"]

    def is_running(found):
        return found[job["metadata"]["name"]]["status"]["state"] == "Running"

    def progress(found):
        return [node.get("progress") for node in found[name]["status"]["nodes"].values() if node["type"] == "Pod"]

    async with kubelet(argo.server), Client(load_credentials(str(argo.server.kubeconfig()))) as client:
        name = await argo.submit(one_runner(spec=MXJobSpec(image=BASE_IMAGE, command=command, servers=0)))
        job = await argo.job(name)
        path = PODS.path(job["metadata"]["namespace"], await argo.poller(name), "log")
        said = b""
        async with contextlib.aclosing(client.stream(path, {"container": "main", "follow": True})) as log:
            async for chunk in log:
                said += chunk
                if b"begun\n" in said and not goes_on.exists():
                    await argo.until("mxjobs", is_running)
                    assert b"ended" not in said
                    await argo.until("workflows", lambda found: progress(found) == ["1/4"])
                    goes_on.touch()
        assert (await argo.finished(name))["status"]["phase"] == "Succeeded"
    assert said.count(b"begun\n") == said.count(b"ended\n") == 1
