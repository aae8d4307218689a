"""A node goes away while a gang runs: what the job says, and what lets it go on."""

import asyncio

import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, submitted
from fake_nodes import NODES, fake_node
from waiting import SECONDS

pytestmark = [pytest.mark.exhaustive, pytest.mark.kubernetes]

RACK = "test.mxjob/rack"
LOST = "digits-worker-0"
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


@pytest.fixture
async def rack(api):
    """Makes a ready node in one of two racks; the nodes go at the end."""
    made = []

    async def make(name, rack):
        manifest = fake_node(name)
        manifest["metadata"]["labels"][RACK] = rack
        (await api.post(NODES, manifest)).ok()
        made.append(name)
        async with asyncio.timeout(SECONDS), api.watch(NODES, fieldSelector=f"metadata.name={name}") as events:
            while not is_ready((await events.next())["object"]):
                pass

    yield make
    for name in made:
        await api.delete(f"{NODES}/{name}")


def is_ready(node):
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def job():
    """A scheduler in one rack and a worker in the other, which leaves an unreachable node after a second."""
    builder = make_mxjob("digits").scheduler().worker(1).restart("ExitCode")
    builder.template("Scheduler", nodeSelector={RACK: "a"})
    tolerations = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        for what in ("unreachable", "not-ready")
    ]
    return submitted(
        builder.template("Worker", nodeSelector={RACK: "b"}, tolerations=tolerations, terminationGracePeriodSeconds=1)
    )


async def run_on(world, rack):
    """The gang runs, its worker on the node `lost`, which nobody plays any more from then on."""
    await rack("steady", "a")
    await rack("lost", "b")
    await world.submit(job())
    running = await world.state("digits", "Running")
    assert running["status"]["restarts"] == 0
    (await world.api.merge(f"{NODES}/lost", {"metadata": {"labels": {"type": None}}})).ok()
    return (await world.api.get(world.path(f"{PODS}/{LOST}"))).ok()["metadata"]["uid"]


async def stuck(world):
    """What the job says once the worker is past its time, while none takes its place."""
    (condition,) = terminating(await world.eventually(JOBS, lambda jobs: terminating(jobs, "True")), "True")
    assert f"pod {LOST} on node lost" in condition["message"]
    assert await world.names(PODS) == [LOST]
    event = await world.event("PodsTerminating")
    assert event["message"] == condition["message"]


def terminating(jobs, status):
    conditions = jobs.get("digits", {}).get("status", {}).get("conditions", [])
    return [each for each in conditions if (each["type"], each["status"]) == ("PodsTerminating", status)]


async def runs_again(world, uid):
    """The job, once both of its pods run in a second attempt."""

    def again(pods):
        attempts = {pod["metadata"]["labels"]["mxjob.kubeflow.org/attempt"] for pod in pods.values()}
        return len(pods) == 2 and attempts == {"1"} and pods[LOST]["metadata"]["uid"] != uid

    await world.eventually(PODS, again)
    await world.eventually(JOBS, lambda jobs: terminating(jobs, "False"))
    return await world.state("digits", "Running")


async def test_a_gang_whose_node_died_waits_for_it_to_be_out_of_service_and_starts_again(world, rack):
    uid = await run_on(world, rack)
    restarting = await world.state(
        "digits", "Restarting"
    )  # kube-controller-manager has missed the node for long enough
    assert "DeletionByTaintManager" in restarting["status"]["conditions"][-1]["message"]
    await stuck(world)
    taints = (await world.api.get(f"{NODES}/lost")).ok()["spec"]["taints"]
    (await world.api.merge(f"{NODES}/lost", {"spec": {"taints": [*taints, OUT_OF_SERVICE]}})).ok()
    await rack("spare", "b")
    job = await runs_again(world, uid)
    assert (job["status"]["restarts"], job["status"].get("restartsCountTowardsMax", 0)) == (1, 0)


async def test_a_pod_of_a_deleted_node_is_deleted_by_force_before_kubernetes_collects_it(world, rack):
    uid = await run_on(world, rack)
    (await world.api.delete(world.path(f"{PODS}/{LOST}"))).ok()
    await stuck(world)
    assert ("DELETE", world.path(f"{PODS}/{LOST}")) not in world.writes
    (await world.api.delete(f"{NODES}/lost")).ok()
    await rack("spare", "b")
    await runs_again(world, uid)
    assert world.writes.count(("DELETE", world.path(f"{PODS}/{LOST}"))) == 1
    assert f"pod {LOST} on node lost" in (await world.event("ForceDeletedPod"))["message"]
