"""Gangs on a real kube-scheduler: whole or not at all, what a waiting one says, and nothing left behind."""

import asyncio
import contextlib
import os
import random
from datetime import timedelta

import pytest
from builders import make_mxjob
from control_plane_fixtures import new_namespace, real_api
from controller_fixtures import JOBS, PODS, ControllerWorld, RecordingClient, submitted
from fake_nodes import NODES, fake_nodes
from fresh_seeds import first_fresh_seed
from gangs import (
    COSCHEDULING_GROUPS,
    GPU,
    NATIVE_GROUPS,
    NATIVE_WORKLOADS,
    ONE_GPU,
    TWELVE,
    Gangs,
    coscheduling_control_plane,
    gang,
    job_of,
    native_control_plane,
    the_twelve,
    two_nodes,
)

from mxnet_operator.integrations.gangs import gangs
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.plan import Policy

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

SIZES = {f"gang-{index}": workers + 2 for index, workers in enumerate(TWELVE)}
"""Pods of each gang."""
SCHEDULERS = ["native"]
if os.environ.get("MXJOB_COSCHEDULING"):
    SCHEDULERS += [pytest.param("coscheduling", marks=pytest.mark.kubernetes("scheduler-plugins"))]
"""scheduler-plugins is built from another release of Kubernetes than all else, for ten minutes: so on request."""
GROUPS = {"native": (NATIVE_GROUPS, NATIVE_WORKLOADS), "coscheduling": (COSCHEDULING_GROUPS,)}
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CLAIM_TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture(scope="module")
def native():
    with native_control_plane() as server:
        yield server


@pytest.fixture(scope="module")
def coscheduling():
    with coscheduling_control_plane() as server:
        yield server


@contextlib.asynccontextmanager
async def at_work(server, gang_scheduling):
    """A namespace of a server with two nodes of eight GPUs, and a controller with this gang scheduling."""
    kubeconfig = server.kubeconfig("controller")
    async with (
        real_api(server, None) as api,
        new_namespace(api, settled=True) as namespace,
        fake_nodes(api, *two_nodes()),
        RecordingClient(load_credentials(str(kubeconfig))) as client,
    ):
        world = ControllerWorld(api, client, kubeconfig, namespace)
        policy = Policy(first_backoff=timedelta(seconds=1), fewer_workers_after=timedelta(seconds=2))
        await world.start(integrations=[gangs(gang_scheduling)], policy=policy)
        try:
            yield world
        finally:
            await world.stop()
            for name in await world.names(JOBS):
                await api.delete(world.path(f"{JOBS}/{name}"))
            await world.eventually(PODS, lambda pods: not pods)


@pytest.fixture
async def world(native):
    async with at_work(native, "native") as made:
        yield made


async def the_twelve_are_run(world, *, killed=(), meanwhile=None):
    """Submit the twelve at once and have each end once it runs whole; returns the jobs, all of which succeeded.

    None ends while another is bound in part: a gang that holds GPUs and waits for more holds up all of them for ever.
    """
    gangs = Gangs(world, SIZES, killed)
    await asyncio.gather(*(world.submit(job) for job in the_twelve().values()))
    following = asyncio.create_task(gangs.follow())

    def all_succeeded(jobs):
        return [job["status"].get("state") for job in jobs.values() if "status" in job] == ["Succeeded"] * len(TWELVE)

    try:
        if meanwhile is not None:
            await meanwhile
        return await world.eventually(JOBS, all_succeeded)
    except AssertionError as error:
        raise AssertionError(f"bound in part: {gangs.incomplete}; {error}") from None
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def nothing_is_left(world, groups):
    for name in await world.names(JOBS):
        (await world.api.delete(world.path(f"{JOBS}/{name}"))).ok()
    await world.eventually(PODS, lambda pods: not pods)
    await world.eventually(groups, lambda found: not found)


def has_group(groups, job):
    return any(job_of(group) == job for group in groups.values())


@pytest.mark.parametrize("gang_scheduling", SCHEDULERS)
async def test_with_groups_all_twelve_succeed_and_no_gang_holds_a_part(request, gang_scheduling):
    async with at_work(request.getfixturevalue(gang_scheduling), gang_scheduling) as world:
        jobs = await the_twelve_are_run(world)
        assert {job["status"]["restarts"] for job in jobs.values()} == {0}
        for kind in GROUPS[gang_scheduling]:
            await nothing_is_left(world, kind)


@pytest.mark.exhaustive
@pytest.mark.parametrize("gang_scheduling", SCHEDULERS)
async def test_all_twelve_succeed_while_workers_die_and_waiting_gangs_are_suspended(request, gang_scheduling):
    """A killed worker's gang restarts whole and waits again; one suspended before it ran comes again when resumed."""
    drawn = random.Random(first_fresh_seed()).sample(sorted(SIZES), 6)
    killed, paused = set(drawn[:3]), drawn[3:]

    async def suspend_and_resume():
        for name in paused:
            await world.eventually(GROUPS[gang_scheduling][0], lambda groups, name=name: has_group(groups, name))
            (await world.api.merge(world.path(f"{JOBS}/{name}"), {"spec": {"runPolicy": {"suspend": True}}})).ok()
        for name in paused:
            jobs = await world.eventually(
                JOBS, lambda jobs, name=name: jobs[name].get("status", {}).get("state") in ("Suspended", "Succeeded")
            )
            assert jobs[name]["status"]["state"] in ("Suspended", "Succeeded")
            (await world.api.merge(world.path(f"{JOBS}/{name}"), {"spec": {"runPolicy": {"suspend": False}}})).ok()

    async with at_work(request.getfixturevalue(gang_scheduling), gang_scheduling) as world:
        jobs = await the_twelve_are_run(world, killed=killed, meanwhile=suspend_and_resume())
        assert {name for name in killed if jobs[name]["status"]["restarts"] >= 1} == killed
        for kind in GROUPS[gang_scheduling]:
            await nothing_is_left(world, kind)


@pytest.mark.exhaustive
@pytest.mark.parametrize("gang_scheduling", SCHEDULERS)
async def test_a_gang_that_waits_alone_runs_once_another_job_has_ended_or_is_deleted(request, gang_scheduling):
    """No pod is created meanwhile, which would have scheduler-plugins try it again, nor does anything else happen."""
    async with at_work(request.getfixturevalue(gang_scheduling), gang_scheduling) as world:
        await world.submit(submitted(gang("ends", 10)))
        await world.state("ends", "Running")
        await world.submit(submitted(gang("waits", 7)))
        await world.eventually(JOBS, lambda jobs: reason(jobs["waits"]) == "Unschedulable")
        pods = (await world.api.get(world.path(PODS))).ok()["items"]
        await world.move([pod["metadata"]["name"] for pod in pods if job_of(pod) == "ends"], "Succeeded", exit_code=0)
        await world.state("waits", "Running")
        await world.submit(submitted(gang("last", 10)))
        await world.eventually(JOBS, lambda jobs: reason(jobs["last"]) == "Unschedulable")
        (await world.api.delete(world.path(f"{JOBS}/waits"))).ok()
        await world.state("last", "Running")


async def test_a_waiting_gang_says_how_much_of_it_fits_and_what_is_missing(world):
    await world.submit(submitted(gang("holds", 10)))
    await world.state("holds", "Running")
    await world.submit(submitted(gang("waits", 7)))

    def said(jobs):
        conditions = jobs.get("waits", {}).get("status", {}).get("conditions", ())
        expected = f"8 of 9 can be placed, missing 1 {GPU}: worker-"
        return [each for each in conditions if each["message"].startswith(expected)]

    (told,) = said(await world.eventually(JOBS, said))
    assert (told["type"], told["status"], told["reason"]) == ("PodsScheduled", "False", "Unschedulable")


@pytest.mark.parametrize("gang_scheduling", SCHEDULERS)
async def test_more_than_there_are_is_said_at_once_and_the_job_runs_when_it_is_put_right(request, gang_scheduling):
    """The steps of training-operator 1.8.1's own test of gang scheduling: 10 of 3 waits, and 3 of 3 runs."""
    async with at_work(request.getfixturevalue(gang_scheduling), gang_scheduling) as world:
        await more_than_there_are_waits_and_is_put_right(world)


async def more_than_there_are_waits_and_is_put_right(world):
    await world.submit(submitted(gang("short", 1, schedulingPolicy={"minAvailable": 10})))

    def said(jobs):
        conditions = jobs.get("short", {}).get("status", {}).get("conditions", ())
        return [each for each in conditions if each["reason"] == "MinAvailableTooLarge"]

    (told,) = said(await world.eventually(JOBS, said))
    assert "minAvailable is 10, and the job has 3 pods" in told["message"]
    before = await world.pods(3)
    policy = {"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 3}}}}
    (await world.api.merge(world.path(f"{JOBS}/short"), policy)).ok()
    await world.state("short", "Running")
    after = await world.pods(3)
    assert {pod["metadata"]["uid"] for pod in before.values()} == {pod["metadata"]["uid"] for pod in after.values()}


def reason(job):
    """Why a job has no nodes, if it says so."""
    conditions = job.get("status", {}).get("conditions", ())
    found = (each["reason"] for each in conditions if (each["type"], each["status"]) == ("PodsScheduled", "False"))
    return next(found, "")


async def test_a_gang_of_a_higher_priority_preempts_whole_gangs(world):
    high = {"metadata": {"name": "high"}, "value": 1000}
    (await world.api.post(PRIORITY_CLASSES, high)).ok()
    try:
        for name, workers in (("a", 6), ("b", 6), ("c", 4)):
            await world.submit(submitted(gang(name, workers)))
        for name in ("a", "b", "c"):
            await world.state(name, "Running")
        await world.submit(submitted(gang("urgent", 7, schedulingPolicy={"priorityClass": "high"})))
        await world.state("urgent", "Running")

        def are_whole_or_nothing(pods):
            placed = [job_of(pod) for pod in pods.values() if pod["spec"].get("nodeName")]
            return all(placed.count(name) in (0, size) for name, size in (("a", 8), ("b", 8), ("c", 6)))

        await world.eventually(PODS, are_whole_or_nothing)
    finally:
        (await world.api.delete(f"{PRIORITY_CLASSES}/high")).ok()


async def test_an_unknown_priority_class_is_said_at_once(world):
    await world.submit(submitted(gang("unknown", 1, schedulingPolicy={"priorityClass": "nope"})))

    def said(jobs):
        conditions = jobs.get("unknown", {}).get("status", {}).get("conditions", ())
        return [each for each in conditions if each["type"] == "ReplicaFailure" and each["status"] == "True"]

    (told,) = said(await world.eventually(JOBS, said))
    assert "no PriorityClass with name nope was found" in told["message"]


async def nodes_of(world, job, part):
    """The node of each pod of a job whose name has this part, once all have one."""

    def have_nodes(pods):
        found = [pod for name, pod in pods.items() if job_of(pod) == job and part in name]
        return found and all(pod["spec"].get("nodeName") for pod in found)

    pods = await world.eventually(PODS, have_nodes)
    return [pod["spec"]["nodeName"] for name, pod in pods.items() if job_of(pod) == job and part in name]


async def test_packed_workers_share_a_node_and_their_servers_do_not(world):
    builder = make_mxjob("packed").scheduler().server(2).worker(6, resources=ONE_GPU).run_policy(placement="Pack")
    await world.submit(submitted(builder))
    assert len(set(await nodes_of(world, "packed", "-worker-"))) == 1
    assert len(set(await nodes_of(world, "packed", "-server-"))) == 2


@pytest.mark.exhaustive
async def test_no_other_job_comes_onto_exclusive_nodes(world):
    await world.submit(submitted(gang("first", 2, placement="Exclusive")))
    (first,) = set(await nodes_of(world, "first", "first-"))
    await world.submit(submitted(gang("second", 6)))
    assert set(await nodes_of(world, "second", "second-")) == {"node-1", "node-2"} - {first}
    await world.submit(submitted(gang("third", 6)))

    def said(jobs):
        return "anti-affinity" in str(jobs.get("third", {}).get("status", {}).get("conditions", ""))

    await world.eventually(JOBS, said)


async def test_claims_of_devices_reach_the_pods_and_a_job_without_a_driver_says_what_it_waits_for(world):
    """Dynamic resource allocation: of a class of devices for which nobody has any, as no driver runs here."""
    claims, uses = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}], [{"name": "gpu", "request": "device"}]
    one = {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
    (await world.api.post(DEVICE_CLASSES, {"metadata": {"name": "gpu.example.com"}, "spec": {}})).ok()
    try:
        template = {"metadata": {"name": "one-gpu"}, "spec": {"spec": one}}
        (await world.api.post(world.path(CLAIM_TEMPLATES), template)).ok()
        job = make_mxjob("claims").worker(2, resources={"claims": uses}).template("Worker", resourceClaims=claims)
        await world.submit(submitted(job))
        for pod in (await world.pods(2)).values():
            assert pod["spec"]["resourceClaims"] == claims
            assert pod["spec"]["containers"][0]["resources"]["claims"] == uses
        await world.eventually(CLAIMS, lambda found: len(found) == 2)

        def said(jobs):
            conditions = jobs.get("claims", {}).get("status", {}).get("conditions", ())
            return [each for each in conditions if "cannot allocate all claims" in each["message"]]

        (told,) = said(await world.eventually(JOBS, said))
        assert (told["type"], told["status"], told["reason"]) == ("PodsScheduled", "False", "Unschedulable")
    finally:
        await world.api.delete(f"{DEVICE_CLASSES}/gpu.example.com")


@pytest.mark.exhaustive
@pytest.mark.parametrize("gang_scheduling", SCHEDULERS)
async def test_a_gang_that_has_lost_a_node_goes_on_with_as_many_workers_as_fit(request, gang_scheduling):
    """Ten Workers, of which four are enough, on two nodes of eight GPUs; then with all of them, once both are back."""
    async with at_work(request.getfixturevalue(gang_scheduling), gang_scheduling) as world:
        await world.submit(submitted(gang("digits", 10, minWorkers=4)))
        await world.state("digits", "Running")
        await lose_a_node(world, "node-2")
        job = (await world.eventually(JOBS, lambda jobs: runs_in_attempt(jobs["digits"], 2)))["digits"]
        assert (job["status"]["fewerReplicas"], job["status"]["startedReplicas"]["Worker"]) == ({"Worker": 8}, 10)
        assert {workers_told_of(pod) for pod in (await world.pods(10)).values()} == {"8"}
        assert "8 of 10 Workers, since the others had no node" in (await world.event("FewerWorkers"))["message"]
        (await world.api.post(NODES, two_nodes()[1])).ok()
        await world.move(["digits-worker-3"], "Failed", exit_code=137)
        job = (await world.eventually(JOBS, lambda jobs: runs_in_attempt(jobs["digits"], 3)))["digits"]
        assert "fewerReplicas" not in job["status"]
        assert {workers_told_of(pod) for pod in (await world.pods(12)).values()} == {"10"}


async def lose_a_node(world, name):
    """The Node is deleted, and so are its pods, as Kubernetes' pod collector does it."""
    (await world.api.delete(f"{NODES}/{name}")).ok()
    for pod in (await world.api.get(world.path(PODS))).ok()["items"]:
        if pod["spec"].get("nodeName") == name:
            path = world.path(f"{PODS}/{pod['metadata']['name']}")
            await world.api.delete(path, {"gracePeriodSeconds": 0})


def runs_in_attempt(job, attempt):
    status = job.get("status", {})
    return (status.get("state"), status.get("restarts")) == ("Running", attempt)


def workers_told_of(pod):
    """How many Workers the processes of a pod are told of."""
    variables = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
    return variables["DMLC_NUM_WORKER"]
