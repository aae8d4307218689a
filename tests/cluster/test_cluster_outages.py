"""Jobs that go on while the API server crashes, or watches expire."""

import asyncio

import pytest
from builders import make_mxjob
from control_plane_fixtures import our_kubernetes
from controller_fixtures import JOBS, PODS, ControllerWorld, RecordingClient, submitted
from fake_nodes import EXIT_CODE, fake_node, fake_nodes, fated
from faulty_proxy import FaultyProxy
from pod_history import pod_history

from mxnet_operator.api.conditions import job_state
from mxnet_operator.kube.credentials import load_credentials

pytestmark = [pytest.mark.exhaustive, pytest.mark.kubernetes]

REPLICAS = (("Scheduler", 0), ("Server", 0), ("Worker", 0), ("Worker", 1))
FAILS, ENDS = {"exitCode": 137}, {"exitCode": 0}
SEVERAL = tuple(f"job-{number}" for number in range(5))


@pytest.fixture(scope="module")
def kubernetes():
    """One of its own: Kubernetes' scheduler is slow to come back from so many crashes of its API server."""
    with our_kubernetes() as server:
        yield server


@pytest.fixture(autouse=True)
async def node(api):
    async with fake_nodes(api, fake_node("large", cpu="99")):
        yield


def job(name, fates, runs_for="2s"):
    """A gang that is on its node already."""
    builder = fated(make_mxjob(name).scheduler().server().worker(2), fates, runs_for=runs_for)
    for replica_type in dict.fromkeys(each for each, _ in REPLICAS):
        builder.template(replica_type, nodeName="large")
    return submitted(builder.restart("ExitCode"))


def ends_in(attempt):
    """The fates of a gang that ends well in this attempt."""
    return {(replica_type, index, attempt): ENDS for replica_type, index in REPLICAS}


def restarts(job):
    status = job.get("status", {})
    return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)


def has_failed_once(job):
    return job_state(job) == "Restarting" or restarts(job) != (0, 0)


def pods(name, *attempts):
    """All pods of a gang in these attempts."""
    return {(f"{name}-{kind.lower()}-{n}", attempt) for kind, n in REPLICAS for attempt in attempts}


async def all_in(world, *states):
    def holds(jobs):
        return len(jobs) == len(SEVERAL) and all(job_state(each) in states for each in jobs.values())

    return await world.eventually(JOBS, holds)


async def test_jobs_end_the_same_though_the_api_server_crashes_while_they_start_run_and_restart(world, kubernetes):
    async with pod_history(world) as history:
        for name in SEVERAL:
            await world.submit(job(name, {("Worker", 1, 0): FAILS, **ends_in(1)}, runs_for="5s"))
        await world.eventually(PODS, lambda pods: pods)
        await asyncio.to_thread(kubernetes.restart_api_server)
        await world.eventually(JOBS, lambda jobs: any(job_state(each) not in {"", "Created"} for each in jobs.values()))
        await asyncio.to_thread(kubernetes.restart_api_server)
        # On a slow machine they may be past it when the API server answers again.
        await world.eventually(JOBS, lambda jobs: any(has_failed_once(each) for each in jobs.values()))
        await asyncio.to_thread(kubernetes.restart_api_server)
        jobs = await all_in(world, "Succeeded", "Failed")
    assert {name: (job_state(each), *restarts(each)) for name, each in jobs.items()} == dict.fromkeys(
        SEVERAL, ("Succeeded", 1, 1)
    )
    for name in SEVERAL:
        history.assert_once_each(name, pods(name, 0, 1), pods(name, 1) | {(f"{name}-worker-1", 0)})
    assert history.beside_older == []


async def test_what_happened_while_a_watch_expired_is_not_missed(api, namespace, kubernetes, tmp_path):
    async with (
        FaultyProxy(api, tmp_path).served() as proxy,
        RecordingClient(load_credentials(str(proxy.kubeconfig))) as client,
    ):
        world = ControllerWorld(api, client, proxy.kubeconfig, namespace)
        await world.start()
        async with pod_history(world) as history:
            await world.submit(job("digits", ends_in(1)))
            await world.state("digits", "Running")
            proxy.cut()
            failing = {"metadata": {"annotations": {EXIT_CODE: "137"}}}
            (await api.merge(world.path(f"{PODS}/digits-worker-1"), failing)).ok()
            await world.eventually(
                PODS, lambda pods: pods.get("digits-worker-1", {}).get("status", {}).get("phase") == "Failed"
            )
            await asyncio.to_thread(kubernetes.restart_api_server)  # which begins a history of its own
            proxy.open.set()
            done = await world.state("digits", "Succeeded")
        await world.stop()
    assert 410 in {code for path, code in proxy.answers if path.endswith("/pods")}
    assert restarts(done) == (1, 1)
    assert history.of("digits") == dict.fromkeys(pods("digits", 0, 1), 1)
    assert history.beside_older == []
