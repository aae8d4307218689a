"""Jobs whose pods, Services and pod groups older operators made, without the label by which children are watched."""

import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, SERVICES, gang, submitted, world
from foreign_children import foreign_pod, labels_of_1_8_1, older_labels, older_service, older_status, owner

from mxnet_operator.api import names
from mxnet_operator.controller import discovery as discovery_module
from mxnet_operator.integrations.gangs import Gangs
from mxnet_operator.integrations.gangs.backend import GangBackend, group_metadata
from mxnet_operator.integrations.gangs.gang import READY_PODGROUPS
from mxnet_operator.kube.resources import LEASES

GROUPS = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
REPLICAS = (("Scheduler", 0), ("Server", 0), ("Worker", 0), ("Worker", 1))
STATES = [("Created",), ("Created", "Running")]


async def begun(w, name="digits", conditions=("Created", "Running"), labels=False):
    """A job that an older operator has begun: with its pods, and the Service of each."""
    made = await w.submit(submitted(make_mxjob(name).gang(1, 2)))
    for replica in REPLICAS:
        (await w.api.post(PODS, foreign_pod(made, *replica, labels=labels))).ok()
        (await w.api.post(SERVICES, older_service(made, *replica))).ok()
    pods = {names.replica_name(name, *replica) for replica in REPLICAS}
    await w.move(pods, "Running")
    (await w.api.merge(f"{JOBS}/{name}/status", {"status": older_status(*conditions)})).ok()
    return pods


async def uids(w, path):
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in (await w.api.get(path)).ok()["items"]}


@pytest.mark.parametrize("conditions", STATES, ids="-".join)
async def test_the_pods_of_a_running_job_are_its_replicas_by_owner_and_name(tmp_path, conditions):
    async with world(tmp_path, start=False) as w:
        pods = await begun(w, conditions=conditions)
        before = await uids(w, PODS)
        await w.start()
        labelled = await w.eventually(PODS, lambda found: all(is_labelled(pod) for pod in found.values()))
        assert (
            labelled["digits-worker-1"]["metadata"]["labels"].items()
            >= (labels_of_1_8_1("digits", "Worker", 1) | older_labels("digits", "Worker", 1)).items()
        )
        await w.state("digits", "Running")
        await w.move(pods, "Succeeded", exit_code=0)
        job = await w.state("digits", "Succeeded")
        assert job["status"].get("restarts", 0) == 0
        assert await uids(w, PODS) == before


async def test_a_pod_of_1_8_1_that_lost_its_label_is_not_gone(tmp_path):
    async with world(tmp_path, start=False) as w:
        pods = await begun(w, labels=True)
        unlabelled = {"metadata": {"labels": {names.LABEL_OPERATOR_NAME: None, names.LABEL_REPLICA_TYPE: "none"}}}
        (await w.api.merge(f"{PODS}/digits-worker-1", unlabelled)).ok()
        await w.start()
        await w.eventually(PODS, lambda found: all(is_labelled(pod) for pod in found.values()))
        await w.state("digits", "Running")
        await w.move(pods, "Succeeded", exit_code=0)
        await w.state("digits", "Succeeded")


async def without_label(w, **job):
    """A job whose running Worker 0 loses the label by which pods are watched, and the uids of its pods before."""
    made = make_mxjob("digits").worker(job["workers"]).restart("ExitCode")
    await w.submit(submitted(made))
    await w.move(await w.pods(job["workers"]), "Running")
    await w.state("digits", "Running")
    before = await uids(w, PODS)
    (await w.api.merge(f"{PODS}/digits-worker-0", {"metadata": {"labels": {names.LABEL_OPERATOR_NAME: None}}})).ok()
    return before


async def test_a_member_of_a_gang_whose_label_a_user_removed_is_found_by_its_name_and_replaced(tmp_path):
    async with world(tmp_path) as w:
        before = await without_label(w, workers=2)
        after = await w.eventually(
            PODS,
            lambda found: (
                len(found) == 2 and not {each["metadata"]["uid"] for each in found.values()} & set(before.values())
            ),
        )
        assert all(map(is_labelled, after.values()))
        await w.run_to_success(after)
        job = await w.state("digits", "Succeeded")
        assert (job["status"]["restarts"], job["status"].get("restartsCountTowardsMax", 0)) == (1, 0)


async def test_a_lone_worker_whose_label_a_user_removed_is_found_by_its_name_and_goes_on(tmp_path):
    async with world(tmp_path) as w:
        before = await without_label(w, workers=1)
        await w.eventually(PODS, lambda found: is_labelled(found.get("digits-worker-0")))
        await w.state("digits", "Running")
        assert await uids(w, PODS) == before


async def test_a_pod_of_another_owner_with_such_a_name_is_no_replica(tmp_path):
    async with world(tmp_path, start=False) as w:
        await begun(w)
        (await w.api.delete(f"{PODS}/digits-worker-1", {"gracePeriodSeconds": 0})).ok()
        other = await w.submit(submitted(make_mxjob("other").worker(1)))
        pod = foreign_pod(other, "Worker", 1, labels=False)
        pod["metadata"]["name"] = "digits-worker-1"
        (await w.api.post(PODS, pod)).ok()
        await w.start()
        job = await w.state("digits", "Failed")
        assert "worker-1 is gone" in job["status"]["conditions"][-1]["message"]
        labels = (await w.api.get(f"{PODS}/digits-worker-1")).ok()["metadata"]["labels"]
        assert names.LABEL_OPERATOR_NAME not in labels


async def test_a_service_that_selects_by_other_labels_is_replaced_once_no_pod_has_a_node(tmp_path):
    async with world(tmp_path, start=False) as w:
        await begun(w)
        before = await uids(w, SERVICES)
        await w.start()
        services = await w.eventually(SERVICES, lambda found: is_labelled(found.get("digits-scheduler-0")))
        replaced = services["digits-scheduler-0"]
        assert replaced["metadata"]["uid"] != before["digits-scheduler-0"]
        assert names.LABEL_JOB_UID in replaced["spec"]["selector"]
        assert services["digits-worker-0"]["metadata"]["uid"] == before["digits-worker-0"]
        await w.state("digits", "Running")


def stand_in():
    """A gang scheduler that has Volcano's rule; its groups are Leases, and ready as soon as they are observed."""
    return GangBackend(
        resources=(LEASES,),
        objects=lambda of, gang: (
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": group_metadata(of, gang)},
        ),
        decorate=lambda _job, _gang, pod: pod,
        rule=READY_PODGROUPS,
    )


@pytest.fixture
def gangs(monkeypatch):
    """Options of a controller with the stand-in, on a server that serves it."""
    asked = discovery_module.is_served

    async def served(client, resource):
        return resource == LEASES or await asked(client, resource)

    monkeypatch.setattr(discovery_module, "is_served", served)
    return {"integrations": [Gangs((stand_in(),))], "discovery_interval": 0.05}


def group_of(job):
    """The pod group that 1.8.1 made of a stored job: its name and owner, no labels."""
    metadata = {"name": job["metadata"]["name"], "ownerReferences": [owner(job)]}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}


@pytest.mark.parametrize("conditions", [(), ("Created",)], ids=["new", "Created"])
async def test_a_job_that_waits_behind_a_group_of_1_8_1_gets_a_group_and_its_pods(tmp_path, gangs, conditions):
    async with world(tmp_path, start=False) as w:
        made = await w.submit(gang("queued"))
        (await w.api.post(GROUPS, group_of(made))).ok()
        if conditions:
            (await w.api.merge(f"{JOBS}/queued/status", {"status": older_status(*conditions)})).ok()
        before = await uids(w, GROUPS)
        await w.start(**gangs)
        pods = await w.pods(5)
        assert (await uids(w, GROUPS))["queued"] != before["queued"]
        await w.run_to_success(pods)
        await w.state("queued", "Succeeded")
        await w.eventually(GROUPS, lambda found: "queued" not in found)


async def test_a_group_of_1_8_1_whose_pods_have_nodes_stays_until_its_job_is_deleted(tmp_path, gangs):
    async with world(tmp_path, start=False) as w:
        made = await w.submit(submitted(make_mxjob("running").gang(1, 2)))
        (await w.api.post(GROUPS, group_of(made))).ok()
        pods = {}
        for replica in REPLICAS:
            pod = foreign_pod(made, *replica, labels=True)
            pod["spec"]["nodeName"] = "node"
            pods[pod["metadata"]["name"]] = (await w.api.post(PODS, pod)).ok()
        await w.move(pods, "Running")
        (await w.api.merge(f"{JOBS}/running/status", {"status": older_status("Created", "Running")})).ok()
        before = await uids(w, GROUPS)
        await w.start(**gangs)
        await w.state("running", "Running")
        assert await uids(w, GROUPS) == before
        await w.move(pods, "Succeeded", exit_code=0)
        await w.state("running", "Succeeded")
        (await w.api.delete(f"{JOBS}/running")).ok()
        await w.eventually(GROUPS, lambda found: "running" not in found)


def is_labelled(item):
    return item is not None and item["metadata"]["labels"].get(names.LABEL_OPERATOR_NAME) == names.OPERATOR_NAME
