"""Kueue's waitForPodsReady where it admits one job at a time, and where it gives a job up, on a real Kueue."""

import pytest
from builders import make_mxjob
from control_plane_fixtures import our_kubernetes
from controller_fixtures import JOBS, submitted
from fake_nodes import fake_node, fake_nodes
from kueue import API, kueue

from mxnet_operator.description import MXJobDescription, to_manifest

pytestmark = [pytest.mark.exhaustive, pytest.mark.kubernetes("kueue")]

GPU = "nvidia.com/gpu"
WORKLOADS = f"{API}/namespaces/default/workloads"


@pytest.fixture(scope="module")
def kubernetes():
    """A control plane of this module's own: Kueue's webhooks are asked about every pod of it."""
    with our_kubernetes() as server:
        yield server


@pytest.fixture(scope="module")
def running(kubernetes):
    """The Kueue of this module: it admits nothing while an admitted job isn't ready."""
    with kueue(kubernetes, waitForPodsReady={"timeout": "10m", "blockAdmission": True}) as started:
        yield started


@pytest.fixture
def unforgiving(running):
    """It gives up a gang that isn't ready in eight seconds for the first time."""
    with running.configured(waitForPodsReady={"timeout": "8s", "requeuingStrategy": {"backoffLimitCount": 0}}):
        yield


@pytest.fixture(autouse=True)
async def queue(running, api, namespace):
    """The queue `a` of eight GPUs."""
    await made(api, "ResourceFlavor", "gpu", {"nodeLabels": {"pool": "gpu"}})
    flavors = [{"name": "gpu", "resources": [{"name": GPU, "nominalQuota": 8}]}]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    await made(api, "ClusterQueue", namespace, {"namespaceSelector": {}, "resourceGroups": groups})
    await made(api, "LocalQueue", "a", {"clusterQueue": namespace}, f"namespaces/{namespace}/")


async def made(api, kind, name, spec, where=""):
    """An object of Kueue's, which may be there."""
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}
    answer = await api.post(f"{API}/{where}{kind.lower()}s", body)
    assert answer.code in (201, 409), answer.text


def node(name, rack):
    """A node of the flavor's, in a rack."""
    found = fake_node(name, **{GPU: "8"})
    found["metadata"]["labels"] |= {"pool": "gpu", "rack": rack}
    return found


def job(name, gpus, rack):
    """A gang in the queue, with one worker for each GPU, in a rack."""
    manifest = submitted(make_mxjob(name).scheduler().worker(gpus, resources={"limits": {GPU: 1}}))
    manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = {"rack": rack}
    return to_manifest(MXJobDescription(queue_name="a"), manifest)


async def says(world, name, words):
    """Wait until the job's condition Admitted says this."""

    def admitted(jobs):
        told = jobs.get(name, {}).get("status", {}).get("conditions", ())
        return any(each["type"] == "Admitted" and words in each["message"] for each in told)

    await world.eventually(JOBS, admitted)


async def test_a_job_that_is_not_ready_holds_up_the_next_until_all_of_its_pods_run(world, api):
    """There is quota for both, and a node for the second alone."""
    async with fake_nodes(api, node("old", "old")):
        await world.submit(job("first", 2, "new"))
        await says(world, "first", "Admitted by")
        await world.submit(job("second", 2, "old"))
        await says(world, "second", "waiting for all admitted workloads to be in PodsReady condition")
        async with fake_nodes(api, node("new", "new")):
            await world.state("first", "Running")
            await world.state("second", "Running")


async def test_a_job_that_was_given_up_queues_again_once_its_workload_is_active(unforgiving, world, api):
    await world.submit(job("late", 2, "new"))
    await says(world, "late", "is not active: The workload is deactivated due to exceeding the maximum number of")
    await world.state("late", "Suspended")
    async with fake_nodes(api, node("new", "new")):
        (name,) = await world.eventually(WORKLOADS, lambda found: len(found) == 1)
        (await api.merge(world.path(f"{WORKLOADS}/{name}"), {"spec": {"active": True}})).ok()
        await world.state("late", "Running")
