"""A controller that is killed after any of its writes, or loses a request or a reply: the job's life ends the same."""

import asyncio
from contextlib import asynccontextmanager
from itertools import product

import pytest
from builders import make_mxjob
from control_plane_fixtures import new_namespace
from controller_fixtures import PODS, SERVICES, ControllerWorld, submitted
from controller_processes import controller_processes
from fake_nodes import EXIT_CODE, fake_node, fake_nodes
from faulty_proxy import Fault, FaultyProxy, kind_of_write
from pod_history import pod_history

from mxnet_operator.api import names

pytestmark = pytest.mark.kubernetes

AT_ONCE = 12
"""Lives under way at a time: each has a controller of its own."""
GANG = ("digits-scheduler-0", "digits-server-0", "digits-worker-0")
ENDS = ({GANG[2]: "137"}, dict.fromkeys(GANG, "0"))
"""How the pods of each attempt end once all of them run."""
KINDS = {"POST services", "POST pods", "POST events", "PATCH mxjobs", "DELETE services", "DELETE pods"}
"""What a controller writes in every such life."""


@pytest.fixture(autouse=True)
async def node(api):
    async with fake_nodes(api, fake_node("large", cpu="999", pods="999")):
        yield


@pytest.fixture
async def processes():
    async with controller_processes() as started:
        yield started


@pytest.fixture
async def gangs(api):
    """Ends the pods of every gang as ENDS says: by then a gang is whole, as MXNet's is before it works."""
    task = asyncio.create_task(end_gangs(api))
    yield
    task.cancel()
    (result,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(result, asyncio.CancelledError), result


async def end_gangs(api):
    running, ended = {}, set()
    while True:
        async with api.watch("/api/v1/pods", labelSelector=names.LABEL_JOB_NAME) as events:
            while event := await events.next():
                pod = event["object"]
                metadata = pod["metadata"]
                gang = (metadata["namespace"], int(metadata["labels"].get(names.LABEL_ATTEMPT, "0")))
                if pod.get("status", {}).get("phase") == "Running":
                    running.setdefault(gang, set()).add(metadata["name"])
                if running.get(gang) == set(GANG) and gang not in ended:
                    ended.add(gang)
                    for name, code in ENDS[gang[1]].items():
                        path = f"/api/v1/namespaces/{gang[0]}/pods/{name}"
                        (await api.merge(path, {"metadata": {"annotations": {EXIT_CODE: code}}})).ok()


def job():
    """A gang of three that fails once; everything that the controller can write is needed in its life."""
    builder = make_mxjob("digits").scheduler().server().worker(1, command=["train"]).restart("ExitCode")
    return submitted(builder.run_policy(cleanPodPolicy="All"))


EXPECTED = {
    "state": "Succeeded",
    "restarts": (1, 1),
    "pods": {(name, attempt): 1 for name in GANG for attempt in (0, 1)},
    "beside older pods": [],
    "left": [],
}


async def outcome(world, history):
    """The end of the life, once nothing is left to do."""
    done = (await world.state("digits", "Succeeded"))["status"]
    for path in (PODS, SERVICES):
        await world.emptied(path)
    return {
        "state": done["state"],
        "restarts": (done.get("restarts", 0), done.get("restartsCountTowardsMax", 0)),
        "pods": dict(history.of("digits")),
        "beside older pods": history.beside_older,
        "left": await world.names(PODS) + await world.names(SERVICES),
    }


@asynccontextmanager
async def prepared(api, folder):
    """A namespace, its history, and a proxy for its controller."""
    async with (
        new_namespace(api, settled=True) as namespace,
        FaultyProxy(api, folder).served() as proxy,
        pod_history(ControllerWorld(api, None, None, namespace)) as history,
    ):
        yield ControllerWorld(api, None, proxy.kubeconfig, namespace), proxy, history


async def life(api, folder, processes, at="", fault=None):
    """One life with a fault at the first write of this kind; a controller that it kills is followed by another."""
    async with prepared(api, folder) as (world, proxy, history):
        last = first = await processes.start(proxy.kubeconfig, world.namespace)
        proxy.at, proxy.fault, proxy.kill = at, fault, lambda: processes.kill(first)
        await world.submit(job())
        ended, hit = asyncio.create_task(outcome(world, history)), asyncio.create_task(proxy.hit.wait())
        try:
            await asyncio.wait({ended, hit}, return_when=asyncio.FIRST_COMPLETED)
            if proxy.hit.is_set() and fault is Fault.KILLED:
                last = await processes.start(proxy.kubeconfig, world.namespace)
            return await ended, proxy
        finally:
            for task in (ended, hit):
                task.cancel()
            processes.kill(last)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("gangs")
async def test_whichever_write_a_fault_meets_the_job_ends_the_same(api, processes, tmp_path):
    """Each fault at the first write of each kind; the simulation has them at any write, in any order."""
    found, undisturbed = await life(api, tmp_path, processes)
    assert found == EXPECTED
    assert {kind_of_write(write) for write in undisturbed.writes} >= KINDS
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(kind, fault):
        async with limit:
            found, proxy = await life(api, tmp_path, processes, kind, fault)
        return found, kind_of_write(proxy.met), proxy.writes

    cases = list(product(sorted(KINDS), Fault))
    lives = await asyncio.gather(*(one(*case) for case in cases))
    wrong = {case: life for case, life in zip(cases, lives, strict=True) if life[:2] != (EXPECTED, case[0])}
    assert wrong == {}
