"""Jobs that name a queue, on a real Kueue: they wait, run where their flavor is, give quota back, and are preempted."""

import asyncio
import os
import re
import time
from datetime import datetime

import pytest
from builders import make_mxjob
from cluster_fixtures import MXJOB
from control_plane_fixtures import our_kubernetes
from controller_fixtures import JOBS, PODS, submitted
from fake_nodes import ending, fake_node, fake_nodes
from kubectl import kubectl
from kueue import API, kueue

from mxnet_operator.api import names
from mxnet_operator.controller import controller as controller_module
from mxnet_operator.controller import queues as queues_module
from mxnet_operator.controller.children.queue_workloads import QUEUE_WORKLOADS
from mxnet_operator.job import MXJobDescription, to_manifest

pytestmark = pytest.mark.kubernetes("kueue")

GPU = "nvidia.com/gpu"
WORKLOADS = f"{API}/namespaces/default/workloads"
TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def kubernetes():
    """A control plane of this module's own: Kueue's webhooks are asked about every pod of it."""
    with our_kubernetes() as server, kueue(server, waitForPodsReady={"timeout": "10m", "blockAdmission": False}):
        yield server


@pytest.fixture(autouse=True)
async def nodes(api):
    """One with GPUs that the flavor is for, and one that isn't the flavor's."""
    labelled = fake_node("pool", **{GPU: "8"})
    labelled["metadata"]["labels"]["pool"] = "gpu"
    async with fake_nodes(api, labelled, fake_node("other", **{GPU: "8"})):
        yield


@pytest.fixture(autouse=True)
async def queues(api, namespace):
    """The queues `a` and `b`, each of four GPUs, of which either may use the other's while that doesn't need them."""
    await made(api, "ResourceFlavor", "gpu", {"nodeLabels": {"pool": "gpu"}, "tolerations": [TOLERATION]})
    await made(api, "WorkloadPriorityClass", "urgent", value=1000)
    for queue in ("a", "b"):
        await made_queue(api, namespace, queue)


async def made_queue(api, namespace, queue, **further):
    """A LocalQueue of this name and its ClusterQueue of four GPUs, in a cohort of the namespace."""
    team = f"{namespace}-{queue}"
    resources = [{"name": GPU, "nominalQuota": 4}]
    flavors = [{"name": "gpu", "resources": resources}]
    spec = {
        "cohortName": namespace,
        "namespaceSelector": {},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}],
        **further,
    }
    await made(api, "ClusterQueue", team, spec)
    await made(api, "LocalQueue", queue, {"clusterQueue": team}, namespace)


async def made(api, kind, name, spec=None, namespace=None, **fields):
    """An object of Kueue's, which may be there."""
    plural = {"WorkloadPriorityClass": "workloadpriorityclasses"}.get(kind, f"{kind.lower()}s")
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, **fields}
    where = f"/namespaces/{namespace}" if namespace else ""
    answer = await api.post(f"{API}{where}/{plural}", body if spec is None else {**body, "spec": spec})
    assert answer.code in (201, 409), answer.text


def job(name, queue, gpus, policy="Never", *, ends=False, **labels):
    """A gang with one worker for each GPU, in a queue."""
    builder = make_mxjob(name).scheduler().worker(gpus, resources={"limits": {GPU: 1}}).restart(policy)
    manifest = submitted(ending(builder, Scheduler=0, Worker=0) if ends else builder)
    return to_manifest(MXJobDescription(queue_name=queue, labels=labels or None), manifest)


async def workloads(world, holds=lambda _: True):
    """The Workloads by the name of their job, once this is true of them."""

    def by_job(found):
        return {each["metadata"]["ownerReferences"][0]["name"]: each for each in found.values()}

    return by_job(await world.eventually(WORKLOADS, lambda found: holds(by_job(found))))


async def a_later_second(world, name):
    """Wait until what is created is younger than a job's Workload: Kueue orders by times that are whole seconds."""
    created = (await workloads(world))[name]["metadata"]["creationTimestamp"]
    await asyncio.sleep(max(0.0, datetime.fromisoformat(created).timestamp() + 1 - time.time()))


def is_true(workload, condition):
    told = workload.get("status", {}).get("conditions", ())
    return any((each["type"], each["status"]) == (condition, "True") for each in told)


async def says(world, name, words):
    """The job, once its condition Admitted says this."""

    def admitted(jobs):
        told = jobs.get(name, {}).get("status", {}).get("conditions", ())
        return any(each["type"] == "Admitted" and words in each["message"] for each in told)

    return (await world.eventually(JOBS, admitted))[name]


async def change(world, name, body):
    (await world.api.merge(world.path(f"{JOBS}/{name}"), body)).ok()


async def of_job(world, name):
    return {pod: each for pod, each in (await listed(world, PODS)).items() if pod.startswith(f"{name}-")}


def workers(pods):
    """Those that the quota, which is of GPUs, gives a flavor: a Scheduler gets none, and runs anywhere."""
    return [pod for name, pod in pods.items() if "-worker-" in name]


def placed(pods):
    return {pod["spec"]["nodeName"] for pod in workers(pods)}


async def listed(world, path):
    return {item["metadata"]["name"]: item for item in (await world.api.get(world.path(path))).ok()["items"]}


async def test_an_admitted_job_runs_where_its_flavor_is_and_gives_its_quota_back_at_its_end(world):
    await world.submit(job("first", "a", 2))
    await world.state("first", "Running")
    pods = await of_job(world, "first")
    assert placed(pods) == {"pool"}
    assert all(TOLERATION in pod["spec"]["tolerations"] for pod in workers(pods))
    stored = (await listed(world, JOBS))["first"]
    assert "nodeSelector" not in stored["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]
    assert "suspend" not in stored["spec"].get("runPolicy", {})
    await workloads(world, lambda found: is_true(found["first"], "PodsReady"))
    await world.submit(job("second", "a", 8, ends=True))
    await says(world, "second", "insufficient unused quota")
    assert not await of_job(world, "second")
    (await world.api.delete(world.path(f"{JOBS}/first"))).ok()
    await world.state("second", "Succeeded")
    await workloads(world, lambda found: is_true(found["second"], "Finished"))


async def test_borrowed_quota_is_reclaimed_from_the_whole_job_which_comes_back_by_itself(world):
    await world.submit(job("borrower", "b", 8))
    await world.state("borrower", "Running")
    await world.submit(job("owner", "a", 4))
    await world.state("owner", "Running")
    assert not await of_job(world, "borrower")
    waits = await world.state("borrower", "Suspended")
    assert (waits["status"]["restarts"], waits["status"].get("restartsCountTowardsMax", 0)) == (1, 0)
    (await world.event("Evicted"))["message"].index("Preempted")
    (await world.api.delete(world.path(f"{JOBS}/owner"))).ok()
    await world.state("borrower", "Running")


async def test_a_more_urgent_job_evicts_one_of_its_own_queue(world):
    await world.submit(job("patient", "a", 8))
    await world.state("patient", "Running")
    await world.submit(job("urgent", "a", 4, ends=True, **{names.QUEUE_PRIORITY_LABEL: "urgent"}))
    await world.state("urgent", "Succeeded")
    await world.state("patient", "Running")


async def test_in_a_strict_queue_a_large_job_gets_its_turn_before_younger_small_ones(world, api, namespace):
    """Two GPUs stay free for it; admitted to them, the small one would go on for ever, and the large one never run."""
    await made_queue(api, namespace, "strict", queueingStrategy="StrictFIFO", cohortName=f"{namespace}-strict")
    await world.submit(job("first", "strict", 2))
    await world.state("first", "Running")
    await world.submit(job("large", "strict", 4))
    await says(world, "large", "insufficient unused quota")
    await a_later_second(world, "large")
    await world.submit(job("small", "strict", 1))
    await world.eventually(JOBS, lambda jobs: jobs["small"].get("status", {}).get("state") == "Suspended")
    (await world.api.delete(world.path(f"{JOBS}/first"))).ok()
    await world.state("large", "Running")
    assert not await of_job(world, "small")


async def test_kubectl_and_mxjob_show_what_stands_in_the_queue(world):
    """As docs/kueue.md prints it."""
    await world.submit(job("first", "a", 8))
    await world.state("first", "Running")
    await world.submit(job("second", "a", 2))
    await says(world, "second", "insufficient unused quota")
    first, second = (await printed(world, [kubectl(), "get", "workloads"])).splitlines()[1:]
    assert re.fullmatch(rf"mxjob-first-\w{{5}} +a +{world.namespace}-a +True +\w+", first.strip())
    assert re.fullmatch(r"mxjob-second-\w{5} +a +\w+", second.strip())
    second = (await printed(world, [*MXJOB, "get", "-o", "wide"])).splitlines()[2]
    assert second.split()[:5] == ["second", "Suspended", "0/1", "-", "0/2"]
    assert second.endswith(
        " MXTrain   Queue a: couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in"
        " flavor gpu, 2 more needed"
    )


async def printed(world, command):
    """What a command of the user's prints, which its terminal has room for."""
    print(f"$ {' '.join(command)}")
    process = await asyncio.create_subprocess_exec(
        *command,
        "--namespace",
        world.namespace,
        env=os.environ | {"KUBECONFIG": str(world.kubeconfig), "COLUMNS": "400"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    print(out.decode())
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_an_eviction_is_carried_through_by_the_next_controller(world):
    await world.submit(job("patient", "a", 8))
    await world.state("patient", "Running")
    await world.stop()
    await world.submit(job("urgent", "a", 4, **{names.QUEUE_PRIORITY_LABEL: "urgent"}))
    await world.start()
    await world.state("urgent", "Running")
    await world.state("patient", "Suspended")
    found = await workloads(world)
    assert not is_true(found["patient"], "QuotaReserved")


async def test_a_waiting_job_that_is_deleted_leaves_nothing(world):
    await world.submit(job("runs", "a", 8))
    await world.state("runs", "Running")
    await world.submit(job("waits", "a", 8))
    await says(world, "waits", "insufficient unused quota")
    (await world.api.delete(world.path(f"{JOBS}/waits"))).ok()
    await workloads(world, lambda found: set(found) == {"runs"})
    assert not await of_job(world, "waits")


async def test_a_job_that_its_user_suspends_gives_its_quota_back_and_queues_again_when_resumed(world):
    await world.submit(job("suspended", "a", 8))
    await world.state("suspended", "Running")
    await world.submit(job("next", "a", 8))
    await says(world, "next", "insufficient unused quota")
    await change(world, "suspended", {"spec": {"runPolicy": {"suspend": True}}})
    await world.state("next", "Running")
    await workloads(world, lambda found: set(found) == {"next"})
    worker = {"mxReplicaSpecs": {"Worker": {"replicas": 4}}, "runPolicy": {"suspend": False}}
    await change(world, "suspended", {"spec": worker})
    await says(world, "suspended", "insufficient unused quota")
    (await world.api.delete(world.path(f"{JOBS}/next"))).ok()
    await world.state("suspended", "Running")
    assert len(await of_job(world, "suspended")) == 5


async def test_an_unknown_queue_or_class_is_said_at_once_and_can_be_mended(world):
    await world.submit(job("lost", "nope", 1, ends=True))
    await says(world, "lost", "LocalQueue nope doesn't exist")
    await world.event("Inadmissible", says="LocalQueue nope doesn't exist")
    await change(world, "lost", {"metadata": {"labels": {names.QUEUE_PRIORITY_LABEL: "nobodys"}}})
    await says(world, "lost", "WorkloadPriorityClass nobodys can be read")
    labels = {names.QUEUE_LABEL: "a", names.QUEUE_PRIORITY_LABEL: None}
    await change(world, "lost", {"metadata": {"labels": labels}})
    await world.state("lost", "Succeeded")


async def test_a_workload_that_is_deactivated_or_deleted_stops_its_job(world):
    await world.submit(job("held", "a", 2))
    await world.state("held", "Running")
    name = (await workloads(world))["held"]["metadata"]["name"]
    path = world.path(f"{WORKLOADS}/{name}")
    (await world.api.merge(path, {"spec": {"active": False}})).ok()
    await says(world, "held", "is not active")
    await world.state("held", "Suspended")
    await workloads(world, lambda found: not is_true(found["held"], "QuotaReserved"))
    (await world.api.merge(path, {"spec": {"active": True}})).ok()
    await world.state("held", "Running")
    (await world.api.delete(path)).ok()
    await world.eventually(JOBS, lambda jobs: jobs["held"]["status"].get("restarts") == 2)
    await world.state("held", "Running")


async def test_a_restart_of_the_gang_keeps_its_quota(world):
    await world.submit(job("restarts", "a", 2, "ExitCode"))
    await world.state("restarts", "Running")
    before = (await workloads(world))["restarts"]["metadata"]["uid"]
    (await world.api.delete(world.path(f"{PODS}/restarts-worker-0"))).ok()
    await world.eventually(
        JOBS,
        lambda jobs: (
            (jobs["restarts"]["status"].get("restarts"), jobs["restarts"]["status"]["state"]) == (1, "Running")
        ),
    )
    found = (await workloads(world))["restarts"]
    assert (found["metadata"]["uid"], is_true(found, "QuotaReserved")) == (before, True)
    assert placed(await of_job(world, "restarts")) == {"pool"}


async def test_an_older_kueue_is_spoken_to_in_its_version(world, monkeypatch):
    """This one serves both versions: the controller is kept from knowing the newer."""
    await world.stop()
    older = QUEUE_WORKLOADS[1:]
    monkeypatch.setattr(queues_module, "QUEUE_WORKLOADS", older)
    monkeypatch.setattr(controller_module, "QUEUE_WORKLOADS", older)
    await world.start()
    await world.submit(job("older", "a", 2, **{names.QUEUE_PRIORITY_LABEL: "urgent"}))
    await world.state("older", "Running")
    found = (await workloads(world))["older"]["spec"]
    assert found["priorityClassRef"]["name"] == "urgent"
    assert found["priority"] == 1000
    await change(world, "older", {"spec": {"runPolicy": {"suspend": True}}})
    await workloads(world, lambda left: not left)
    assert any("/v1beta1/" in path for _, path in world.writes)
