"""The MXJobs that training-operator 1.8.1 came with, unchanged, from creation to success on a real Kubernetes."""

import asyncio

import pytest
import yaml
from controller_fixtures import PODS
from fake_nodes import EXIT_CODE, NODES, fake_node
from kubernetes_programs import source_or_skip
from waiting import SECONDS

pytestmark = pytest.mark.kubernetes("training-operator")

EXAMPLES = ("mxjob_dist_v1.yaml", "byteps/dist_gpu_v1.yaml", "tune/mx_job_tune_gpu_v1.yaml")
DECIDE = {"scheduler", "worker", "tuner"}
TYPE = "training.kubeflow.org/replica-type"


@pytest.fixture
async def node(api):
    """A node on which all that the examples ask for fits."""
    manifest = fake_node("large", **{"cpu": "256", "memory": "1Ti", "nvidia.com/gpu": "64"})
    (await api.post(NODES, manifest)).ok()
    async with asyncio.timeout(SECONDS), api.watch(NODES, labelSelector="type=kwok") as events:
        while (await events.next())["object"]["spec"].get("taints") is not None:
            pass
    yield
    (await api.delete(f"{NODES}/large")).ok()


@pytest.mark.sampled
@pytest.mark.parametrize("example", EXAMPLES)
async def test_an_example_of_the_last_official_operator_runs_unchanged(world, node, example):
    manifest = yaml.safe_load((source_or_skip("training-operator") / "examples" / "mxnet" / example).read_text())
    manifest["metadata"].pop("namespace", None)  # the test's own
    count = sum(spec.get("replicas", 1) for spec in manifest["spec"]["mxReplicaSpecs"].values())
    name = (await world.submit(manifest))["metadata"]["name"]
    pods = await world.pods(count)
    await world.state(name, "Running")
    for pod, found in pods.items():
        if found["metadata"]["labels"][TYPE] in DECIDE:
            ending = {"metadata": {"annotations": {EXIT_CODE: "0"}}}
            (await world.api.merge(world.path(f"{PODS}/{pod}"), ending)).ok()
    await world.state(name, "Succeeded")
