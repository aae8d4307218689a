"""Deadlines, suspension and the time to live on a real Kubernetes, with and without a restart of the controller."""

from datetime import UTC, datetime, timedelta

import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, SERVICES, submitted
from fake_nodes import ending, fake_node, fake_nodes, fated

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.parametrize("restarted", [False, True], ids=["one-controller", "restarted"]),
]

DONE = {"Scheduler": 0, "Server": 0, "Worker": 0}


SOON = timedelta(seconds=2)


@pytest.fixture(autouse=True)
async def node(api):
    async with fake_nodes(api, fake_node("node")):
        yield


def gang(**run_policy):
    return make_mxjob("digits").scheduler().server().worker(2).restart("OnFailure").run_policy(**run_policy)


async def perhaps_restart(world, restarted):
    if restarted:
        await world.stop()
        await world.start()


async def suspend(world, *, suspended):
    (await world.api.merge(world.path(f"{JOBS}/digits"), {"spec": {"runPolicy": {"suspend": suspended}}})).ok()


async def limit(world, field, since):
    """Let the time that the field limits be over soon, counted from `since`; returns the limit in seconds."""
    seconds = int((datetime.now(UTC) + SOON - datetime.fromisoformat(since)).total_seconds())
    (await world.api.merge(world.path(f"{JOBS}/digits"), {"spec": {"runPolicy": {field: seconds}}})).ok()
    return seconds


@pytest.mark.sampled
async def test_a_finished_job_is_deleted_when_its_time_is_over_with_all_that_it_had(world, restarted):
    await world.submit(submitted(ending(gang(cleanPodPolicy="None"), **DONE)))
    job = await world.state("digits", "Succeeded")
    assert len(await world.names(PODS)) == 4
    await limit(world, "ttlSecondsAfterFinished", job["status"]["completionTime"])
    await perhaps_restart(world, restarted)
    for path in (JOBS, PODS, SERVICES):
        await world.emptied(path)


@pytest.mark.sampled
async def test_a_suspended_job_gives_up_its_pods_and_begins_anew_when_it_is_resumed(world, restarted):
    ends_well = {(kind, 0, 1): {"exitCode": 0} for kind in DONE} | {("Worker", 1, 1): {"exitCode": 0}}
    await world.submit(submitted(fated(gang(), ends_well, runs_for="2s")))
    first = await world.state("digits", "Running")
    await suspend(world, suspended=True)
    await perhaps_restart(world, restarted)
    job = await world.state("digits", "Suspended")
    assert "startTime" not in job["status"]
    assert await world.names(PODS) == []
    await perhaps_restart(world, restarted)
    await suspend(world, suspended=False)
    job = await world.state("digits", "Succeeded")
    status = job["status"]
    assert (status["restarts"], status.get("restartsCountTowardsMax", 0)) == (1, 0)
    assert status["startTime"] >= first["status"]["startTime"]
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "Created": "True",
        "Running": "False",
        "Suspended": "False",
        "Succeeded": "True",
    }
