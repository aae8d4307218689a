"""A job on a real Kubernetes gets another number of workers: refused while it runs, followed after a suspension."""

import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, submitted

pytestmark = pytest.mark.kubernetes

REFUSAL = "numbers of replicas can be changed only while runPolicy.suspend is true"


def job():
    """Two workers whom the real scheduler leaves alone."""
    return submitted(make_mxjob("digits").worker(2).restart("ExitCode").template("Worker", schedulerName="nobody"))


def workers(count):
    return {"spec": {"mxReplicaSpecs": {"Worker": {"replicas": count}}}}


async def change(world, change):
    return await world.api.merge(world.path(f"{JOBS}/digits"), change)


def variables(pod):
    return {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}


@pytest.mark.parametrize("count", [1, 3])
async def test_a_job_runs_with_another_number_of_workers_after_a_suspension(world, count):
    await world.submit(job())
    pods = await world.pods(2)
    await world.move(pods, "Running")
    await world.state("digits", "Running")
    refused = await change(world, workers(count))
    assert refused.code == 422
    assert REFUSAL in refused.body["message"]
    assert await world.names(PODS) == ["digits-worker-0", "digits-worker-1"]

    (await change(world, {"spec": {"runPolicy": {"suspend": True}}})).ok()
    await world.state("digits", "Suspended")
    (await change(world, workers(count))).ok()
    (await change(world, {"spec": {"runPolicy": {"suspend": False}}})).ok()
    pods = await world.pods(count)
    assert {variables(pod)["DMLC_NUM_WORKER"] for pod in pods.values()} == {str(count)}
    await world.run_to_success(pods)
    done = (await world.state("digits", "Succeeded"))["status"]
    assert done["startedReplicas"] == {"Worker": count}
    assert done["replicaStatuses"]["Worker"]["succeeded"] == count
