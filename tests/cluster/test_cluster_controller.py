"""The controller on a real Kubernetes: jobs get what they need, end, and leave nothing behind."""

import pytest
from builders import make_mxjob
from control_plane import USERS
from controller_fixtures import JOBS, PODS, SERVICES, gang, submitted

pytestmark = pytest.mark.kubernetes

WRITES = ("create", "update", "patch", "delete", "deletecollection")


def unscheduled_gang():
    """A job whose pods the real scheduler leaves alone: it would say of each that there is no node."""
    builder = make_mxjob("digits").gang()
    for replica_type in ("Scheduler", "Server", "Worker"):
        builder.template(replica_type, schedulerName="nobody")
    return submitted(builder)


async def finished(world):
    """A job that ran to success."""
    await world.submit(unscheduled_gang())
    pods = await world.pods(5)
    await world.move(pods, "Running")
    await world.state("digits", "Running")
    await world.move(pods, "Succeeded", exit_code=0)
    return await world.state("digits", "Succeeded")


async def test_a_job_gets_its_services_and_pods_which_it_owns(world):
    job = await world.submit(gang())
    pods = await world.pods(5)
    assert await world.names(SERVICES) == ["digits-mx", "digits-scheduler-0"]
    assert {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods.values()} == {job["metadata"]["uid"]}
    await world.state("digits", "Created")


async def test_a_job_of_n_pods_takes_at_most_n_plus_8_writes(world, kubernetes):
    await finished(world)
    assert (await world.event("MXJobSucceeded"))["type"] == "Normal"
    user, _ = USERS["controller"]
    writes = [
        f"{entry['verb']} {entry['requestURI']} {entry['responseStatus']['code']}"
        for entry in kubernetes.requests(user)
        if entry["verb"] in WRITES and entry["objectRef"].get("namespace") == world.namespace
    ]
    assert len(writes) <= 5 + 8, writes


async def test_a_deleted_job_takes_everything_along(world):
    await world.submit(gang())
    await world.pods(5)
    (await world.api.delete(world.path(f"{JOBS}/digits"), {"propagationPolicy": "Background"})).ok()
    for path in (JOBS, PODS, SERVICES):
        await world.emptied(path)


async def test_a_worker_that_fails_fails_the_job_with_its_words(world):
    await world.submit(gang())
    pods = await world.pods(5)
    await world.move(pods, "Running")
    await world.state("digits", "Running")
    await world.move(["digits-worker-1"], "Failed", exit_code=3, message="no such file: data.npz")
    job = await world.state("digits", "Failed")
    message = job["status"]["conditions"][-1]["message"]
    assert all(word in message for word in ("worker-1", "code 3", "no such file: data.npz")), message


async def test_a_finished_job_is_still_there_when_a_controller_starts_anew(world):
    job = await finished(world)
    await world.stop()
    await world.start()
    assert (await world.state("digits", "Succeeded"))["metadata"]["uid"] == job["metadata"]["uid"]
