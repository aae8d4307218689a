"""Jobs on the fake nodes of KWOK, where the real scheduler places their pods."""

import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, submitted
from fake_nodes import ending, fake_node, fake_nodes

pytestmark = pytest.mark.kubernetes

GPU = "nvidia.com/gpu"


def job(*, gpus, exit_codes):
    """A scheduler, a server and two workers with so many GPUs each, whose pods end with these codes, by type."""
    limits = {"limits": {GPU: str(gpus)}} if gpus else {}
    return submitted(ending(make_mxjob("digits").scheduler().server().worker(2, resources=limits), **exit_codes))


@pytest.fixture
async def nodes(api):
    async with fake_nodes(api, fake_node("plain"), fake_node("with-gpus", **{GPU: "2"})):
        yield


async def test_workers_are_placed_where_the_gpus_are(world, nodes):
    await world.submit(job(gpus=1, exit_codes={"Scheduler": 0, "Server": 0, "Worker": 0}))
    done = await world.state("digits", "Succeeded")
    assert done["status"]["completedIndexes"]["Worker"] == "0-1"
    pods = (await world.api.get(world.path(PODS))).ok()["items"]
    placed = {pod["spec"]["nodeName"] for pod in pods if "-worker-" in pod["metadata"]["name"]}
    assert placed == {"with-gpus"}


async def test_a_worker_that_fails_on_its_node_fails_the_job(world, nodes):
    await world.submit(job(gpus=0, exit_codes={"Worker": 3}))
    failed = await world.state("digits", "Failed")
    assert "code 3" in failed["status"]["conditions"][-1]["message"]


async def test_what_fits_no_node_waits_in_the_schedulers_own_words(world, nodes):
    await world.submit(job(gpus=4, exit_codes={}))

    def waiting(pods):
        conditions = pods.get("digits-worker-0", {}).get("status", {}).get("conditions", [])
        return [each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]

    (condition,) = waiting(await world.eventually(PODS, waiting))
    assert condition["reason"] == "Unschedulable"
    assert f"Insufficient {GPU}" in condition["message"]

    def said(jobs):
        conditions = jobs.get("digits", {}).get("status", {}).get("conditions", [])
        return [each for each in conditions if each["type"] == "PodsScheduled"]

    (of_the_job,) = said(await world.eventually(JOBS, said))
    assert (of_the_job["status"], of_the_job["reason"]) == ("False", "Unschedulable")
    assert "worker-" in of_the_job["message"]
    assert f"Insufficient {GPU}" in of_the_job["message"]
