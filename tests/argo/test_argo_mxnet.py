"""The example workflow with real MXNet: Argo, our controller, Kubernetes' scheduler, and our kubelet's processes."""

import asyncio
import json
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from argo_fixtures import node_of, outputs_of
from cluster_fixtures import DIGITS, DIGITS_IMAGE
from images_fixtures import SHARED_HOME

from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.resources import NODES
from mxnet_operator.local.claims import claim_subnet
from mxnet_operator.local.images import ImageStore
from mxnet_operator.local.kubelet import Kubelet

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec"),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(900),  # the first test's has the start of the control plane in it
]

TRAIN = Path(__file__).parents[2] / "argo" / "examples" / "train.yaml"


@asynccontextmanager
async def kubelet(server):
    """Our kubelet as a node of the cluster; it has the image of examples/digits."""
    with tempfile.TemporaryDirectory(prefix="mxjob-test-") as folder:
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
