"""Jobs that name a queue, on a real Kueue: they wait, run where their flavor is, give quota back, and are preempted."""

import asyncio
import contextlib
import re
import textwrap
from pathlib import Path

import pytest
import yaml
from builders import make_mxjob
from control_plane_fixtures import our_kubernetes
from controller_fixtures import JOBS, PODS, submitted
from fake_nodes import ending, fake_node, fake_nodes
from kueue import API, kueue
from waiting import SECONDS

from mxnet_operator.api.queue_labels import QUEUE_LABEL, QUEUE_PRIORITY_LABEL
from mxnet_operator.description import MXJobDescription, to_manifest
from mxnet_operator.integrations.kueue import Kueue

pytestmark = pytest.mark.kubernetes("kueue")

GPU = "nvidia.com/gpu"
WORKLOADS = f"{API}/namespaces/default/workloads"
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "kueue.md"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
BATCH_JOBS = "/apis/batch/v1/namespaces/default/jobs"
POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def kubernetes():
    """A control plane of this module's own: Kueue's webhooks are asked about every pod of it."""
    with our_kubernetes() as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def running(kubernetes):
    """The Kueue of this module."""
    with kueue(kubernetes, waitForPodsReady={"timeout": "10m", "blockAdmission": False}) as started:
        yield started


@pytest.fixture
def impatient(running):
    """It evicts a gang that isn't ready, or ready again, in eight seconds, and queues it again after two, then four."""
    times = {"timeout": "8s", "recoveryTimeout": "8s", "requeuingStrategy": {"backoffBaseSeconds": 2}}
    with running.configured(waitForPodsReady=times):
        yield


@pytest.fixture(params=[["MXJob.v1.kubeflow.org"], []], ids=["told of MXJobs", "not told of MXJobs"])
def manages_all(running, request):
    """It manages Jobs and pods that name no queue, too; whether it knows MXJobs as owners of pods."""
    integrations = {"frameworks": ["pod", "batch/job"], "externalFrameworks": request.param}
    with running.configured(manageJobsWithoutQueueName=True, integrations=integrations):
        yield


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


async def made_queue(api, namespace, queue):
    """A LocalQueue of this name and its ClusterQueue of four GPUs, in a cohort of the namespace."""
    team = f"{namespace}-{queue}"
    resources = [{"name": GPU, "nominalQuota": 4}]
    flavors = [{"name": "gpu", "resources": resources}]
    spec = {
        "cohortName": namespace,
        "namespaceSelector": {},
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}],
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


def for_new_node(manifest):
    """The same job, whose workers run on no node but `new_node`."""
    manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] = {"rack": "new"}
    return manifest


def new_node(api):
    """A node of the flavor's, until the context ends."""
    new = fake_node("new", **{GPU: "8"})
    new["metadata"]["labels"] |= {"pool": "gpu", "rack": "new"}
    return fake_nodes(api, new)


async def workloads(world, holds=lambda _: True):
    """The Workloads by the name of their job, once this is true of them."""

    def by_job(found):
        return {each["metadata"]["ownerReferences"][0]["name"]: each for each in found.values()}

    return by_job(await world.eventually(WORKLOADS, lambda found: holds(by_job(found))))


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
    assert not stored["spec"].get("runPolicy", {}).get("suspend")
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


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
async def test_an_older_kueue_is_spoken_to_in_its_version(world, monkeypatch):
    """This one serves both versions: the controller is kept from knowing the newer."""
    await world.stop()
    monkeypatch.setattr(Kueue, "choices", Kueue.choices[1:])
    await world.start()
    await world.submit(job("older", "a", 2, **{QUEUE_PRIORITY_LABEL: "urgent"}))
    await world.state("older", "Running")
    found = (await workloads(world))["older"]["spec"]
    assert found["priorityClassRef"]["name"] == "urgent"
    assert found["priority"] == 1000
    await change(world, "older", {"spec": {"runPolicy": {"suspend": True}}})
    await workloads(world, lambda left: not left)
    assert any("/v1beta1/" in path for _, path in world.writes)


@pytest.mark.exhaustive
async def test_a_gang_that_is_not_ready_in_time_gives_its_quota_back_and_runs_when_it_can(impatient, world, api):
    """Its node comes too late for the first time; with a backoffLimit of 0 it runs all the same."""
    late = for_new_node(job("late", "a", 8, "ExitCode", ends=True))
    late["spec"]["runPolicy"] = {"backoffLimit": 0}
    await world.submit(late)
    await says(world, "late", "Admitted by")
    await world.submit(job("next", "a", 8, ends=True))
    requeues_at = await requeued(world, "late")
    await world.state("next", "Succeeded")
    async with new_node(api):
        ended = await world.state("late", "Succeeded")
    assert (ended["status"]["restarts"] >= 1, ended["status"].get("restartsCountTowardsMax", 0)) == (True, 0)
    assert "PodsReadyTimeout" in (await world.event("Evicted"))["message"]
    assert since((await workloads(world))["late"], "QuotaReserved") >= requeues_at


async def requeued(world, name):
    """When Kueue lets a job queue again that it has evicted, once that has given its quota back."""

    def waits(found):
        return requeue_time(found[name]) and not is_true(found[name], "QuotaReserved")

    return requeue_time((await workloads(world, waits))[name])


def requeue_time(workload):
    return workload.get("status", {}).get("requeueState", {}).get("requeueAt")


def since(workload, condition):
    return next(each["lastTransitionTime"] for each in workload["status"]["conditions"] if each["type"] == condition)


@pytest.mark.exhaustive
async def test_a_job_without_a_queue_is_not_managed_and_its_pods_are_held_back_where_kueue_is_not_told_of_mxjobs(
    manages_all, request, world
):
    """As docs/kueue.md has it; a Job of Kubernetes' own shows what Kueue does with what it manages."""
    batch = {"metadata": {"name": "batch"}, "spec": {"template": POD}}
    (await world.api.post(world.path(BATCH_JOBS), batch)).ok()
    await world.submit(job("free", None, 1))
    await world.submit(job("named", "a", 1))
    await world.eventually(BATCH_JOBS, lambda jobs: jobs["batch"]["spec"].get("suspend"))
    found = await workloads(world, lambda found: {"batch", "named"} <= set(found))
    assert "queueName" not in found["batch"]["spec"]
    if "not told" in request.node.name:
        for name in ("free", "named"):
            await world.eventually(JOBS, lambda jobs, name=name: "scheduling gates" in str(jobs[name].get("status")))
        return
    for name in ("free", "named"):
        await world.state(name, "Running")
        pods = await of_job(world, name)
        assert not any("schedulingGates" in pod["spec"] for pod in pods.values())
    assert set(await workloads(world)) == {"batch", "named"}


@contextlib.asynccontextmanager
async def policy_of_the_guide(api):
    """The policy and its binding that docs/kueue.md has for who wants every job in a queue."""
    blocks = re.findall(r"^ *```yaml\n(.*?)^ *```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    parts = [yaml.safe_load_all(textwrap.dedent(block)) for block in blocks]
    policies = [each for part in parts for each in part if each["kind"].startswith("ValidatingAdmissionPolicy")]
    paths = {each["kind"]: f"{ADMISSION}/{_plural(each['kind'])}" for each in policies}
    for each in policies:
        (await api.post(paths[each["kind"]], each)).ok()
    try:
        yield
    finally:
        for each in policies:
            await api.delete(f"{paths[each['kind']]}/{each['metadata']['name']}")


def _plural(kind):
    return "validatingadmissionpolicies" if kind.endswith("Policy") else "validatingadmissionpolicybindings"


@pytest.mark.exhaustive
async def test_the_policy_of_the_guide_refuses_jobs_that_name_no_queue_and_leaves_older_ones_alone(world, api):
    await world.submit(job("older", None, 1))
    jobs, unnamed = world.path(JOBS), job("unnamed", None, 1)
    unnamed["metadata"]["namespace"] = world.namespace
    async with policy_of_the_guide(api), asyncio.timeout(SECONDS):
        while (answer := await api.post(f"{jobs}?dryRun=All", unnamed)).code < 300:
            pass  # until the API server has seen the binding
        assert answer.code == 422, answer.text
        assert "name a queue in the label kueue.x-k8s.io/queue-name" in answer.text
        await world.submit(job("named", "a", 1))
        away = {"metadata": {"labels": {QUEUE_LABEL: None}}}
        assert (await api.merge(f"{jobs}/named", away)).code == 422
        (await api.merge(f"{jobs}/older", {"spec": {"runPolicy": {"suspend": True}}})).ok()
        (await api.delete(f"{jobs}/older", {"propagationPolicy": "Foreground"})).ok()
        await world.eventually(JOBS, lambda found: "older" not in found)
