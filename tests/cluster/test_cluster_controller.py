"""The controller on a real Kubernetes: jobs get what they need, end, and leave nothing behind."""

import asyncio

import pytest
from builders import make_mxjob
from control_plane import USERS
from controller_fixtures import JOBS, PODS, SERVICES, gang, submitted
from waiting import SECONDS

pytestmark = pytest.mark.kubernetes

WRITES = ("create", "update", "patch")
"""What counts towards the budget; clean-up doesn't (docs/semantics.md, Status)."""


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


async def test_a_job_of_n_pods_takes_at_most_n_plus_8_writes(world, kubernetes):
    await finished(world)
    assert (await world.event("MXJobSucceeded"))["type"] == "Normal"
    user, _ = USERS["controller"]
    writes = [
        f"{entry['verb']} {entry['requestURI']} {entry['responseStatus']['code']}"
        for entry in kubernetes.requests(user)
        if entry["verb"] in WRITES and entry["objectRef"].get("namespace") == world.namespace
    ]
    print(*writes, sep="\n")
    assert len(writes) <= 5 + 8


async def test_a_deleted_job_takes_everything_along(world):
    await world.submit(gang())
    await world.pods(5)
    (await world.api.delete(world.path(f"{JOBS}/digits"), {"propagationPolicy": "Background"})).ok()
    for path in (JOBS, PODS, SERVICES):
        await world.emptied(path)


async def test_a_quota_shows_in_the_jobs_condition_in_the_servers_words_until_it_allows_the_pods(world):
    quotas = world.path(PODS).replace("/pods", "/resourcequotas")
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}}
    (await world.api.post(quotas, quota)).ok()
    await enforced(world, quotas)
    await world.submit(unscheduled_gang())
    refused = (await world.eventually(JOBS, lambda jobs: replica_failure(jobs, "True")))["digits"]
    (condition,) = replica_failure({"digits": refused}, "True")
    assert condition["reason"] == "FailedCreate"
    assert "exceeded quota: few" in condition["message"]
    (await world.api.delete(f"{quotas}/few")).ok()
    await world.pods(5)
    await world.eventually(JOBS, lambda jobs: replica_failure(jobs, "False"))


async def test_a_job_of_the_same_name_starts_as_soon_as_the_old_pods_are_gone(world):
    old = await world.submit(unscheduled_gang())
    kept = "digits-worker-0"
    await world.pods(5)
    finalizer = {"metadata": {"finalizers": ["test.mxjob/keeps"]}}
    (await world.api.merge(world.path(f"{PODS}/{kept}"), finalizer)).ok()
    (await world.api.delete(world.path(f"{JOBS}/digits"), {"propagationPolicy": "Background"})).ok()
    new = await world.submit(unscheduled_gang())
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    await world.eventually(PODS, lambda pods: "deletionTimestamp" in pods.get(kept, {}).get("metadata", {}))
    (await world.api.merge(world.path(f"{PODS}/{kept}"), {"metadata": {"finalizers": None}})).ok()

    def all_new(pods):
        owners = {owner["uid"] for pod in pods.values() for owner in pod["metadata"]["ownerReferences"]}
        return len(pods) == 5 and owners == {new["metadata"]["uid"]}

    pods = await world.eventually(PODS, all_new)
    await world.run_to_success(pods)
    job = await world.state("digits", "Succeeded")
    assert not replica_failure({"digits": job}, "True")


def replica_failure(jobs, status):
    conditions = jobs.get("digits", {}).get("status", {}).get("conditions", [])
    return [each for each in conditions if (each["type"], each["status"]) == ("ReplicaFailure", status)]


async def enforced(world, quotas):
    """Wait until the quota is counted: before that the server refuses pods for want of its numbers."""
    async with asyncio.timeout(SECONDS), world.api.watch(quotas) as events:
        while "used" not in (await events.next())["object"].get("status", {}):
            pass
