"""What takes a pod away on a real Kubernetes, and what of it counts: eviction, preemption, deletion."""

from datetime import timedelta

import pytest
import tenacity
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, submitted
from fake_nodes import fake_node, fake_nodes, fated
from pod_history import pod_history
from waiting import SECONDS

from mxnet_operator.plan import Policy

pytestmark = pytest.mark.kubernetes

PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
RETRIES = tenacity.AsyncRetrying(stop=tenacity.stop_after_delay(SECONDS), wait=tenacity.wait_fixed(0.1), reraise=True)
WORKER = "digits-worker-0"


@pytest.fixture(autouse=True)
async def node(api):
    async with fake_nodes(api, fake_node("node", cpu="4")):
        yield


@pytest.fixture
def policy():
    """The wait between attempts grows as always, from a second."""
    return Policy(first_backoff=timedelta(seconds=1))


def gang(policy="OnFailure", **run_policy):
    builder = make_mxjob("digits").scheduler().server().worker(1, resources={"requests": {"cpu": "2"}})
    builder = fated(builder, {}, stops_for="2s")
    return submitted(builder.restart(policy).run_policy(**run_policy))


async def evict(world):
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": WORKER}}
    (await world.api.post(world.path(f"{PODS}/{WORKER}/eviction"), eviction)).ok()


async def delete(world):
    (await world.api.delete(world.path(f"{PODS}/{WORKER}"))).ok()


async def preempt(world):
    """A pod that matters more and needs the worker's place; it is gone as soon as it has it."""
    (await world.api.post(PRIORITIES, {"metadata": {"name": "urgent"}, "value": 1000})).ok()
    try:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
        spec = {"priorityClassName": "urgent", "containers": [container]}
        async for attempt in RETRIES:  # the server's admission hears of the new class a moment later
            with attempt:
                (await world.api.post(world.path(PODS), {"metadata": {"name": "urgent"}, "spec": spec})).ok()
        await world.eventually(PODS, lambda pods: pods.get("urgent", {}).get("status", {}).get("phase") == "Running")
        (await world.api.delete(world.path(f"{PODS}/urgent"))).ok()
    finally:
        (await world.api.delete(f"{PRIORITIES}/urgent")).ok()


def restarts(job):
    return job["status"].get("restarts", 0), job["status"].get("restartsCountTowardsMax", 0)


async def running_again(world, attempt):
    def holds(jobs):
        status = jobs.get("digits", {}).get("status", {})
        return status.get("state") == "Running" and status.get("restarts") == attempt

    return (await world.eventually(JOBS, holds))["digits"]


TAKEN = {
    evict: "worker-0 was disrupted (EvictionByEvictionAPI) while the job ran",
    preempt: "worker-0 was disrupted (PreemptionByScheduler) while the job ran",
    delete: "worker-0 was deleted while the job ran",
}


@pytest.mark.sampled
@pytest.mark.parametrize("take_away", TAKEN)
async def test_a_pod_that_is_taken_away_restarts_the_gang_and_counts_nothing(world, take_away):
    async with pod_history(world) as history:
        await world.submit(gang(backoffLimit=0))
        await world.state("digits", "Running")
        await take_away(world)
        job = await running_again(world, 1)
    message = (await world.event("MXJobRestarting"))["message"]
    assert f"(restart 1; 0 of 0 count). {TAKEN[take_away]}" in message
    assert restarts(job) == (1, 0)
    assert set(history.of("digits").values()) == {1}
    assert len(history.of("digits")) == 6
    assert not history.beside_older
