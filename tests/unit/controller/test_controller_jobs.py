"""The controller on the local API server: what becomes of jobs whose pods a test moves through their phases."""

from builders import make_mxjob
from controller_fixtures import EVENTS, JOBS, PODS, gang, submitted, world
from waiting import until

from mxnet_operator.api import names


async def test_a_failing_worker_fails_the_job_with_its_words_and_what_runs_is_stopped(tmp_path):
    async with world(tmp_path) as w:
        await w.submit(gang())
        pods = await w.pods(5)
        await w.move([name for name in pods if name != "digits-server-1"], "Running")  # server 1 is never scheduled
        for name in pods:
            if name != "digits-server-1":
                bind = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
                (await w.api.post(f"{PODS}/{name}/binding", bind)).ok()
        await w.move(["digits-worker-1"], "Failed", exit_code=3, message="no such file: data.npz")
        job = await w.state("digits", "Failed")
        message = job["status"]["conditions"][-1]["message"]
        assert all(word in message for word in ("worker-1", "code 3", "no such file: data.npz")), message
        assert (await w.event("MXJobFailed"))["message"] == message

        def stopped(pods):
            running = [p for p in pods.values() if p["status"]["phase"] == "Running"]
            return len(running) == 3 and all(p["spec"].get("activeDeadlineSeconds") == 1 for p in running)

        pods = await w.eventually(PODS, stopped)
        assert "digits-server-1" not in await w.names(PODS)


async def test_a_pod_of_somebody_else_under_our_name_is_left_alone_and_told_of(tmp_path):
    async with world(tmp_path, start=False) as w:
        squatter = {"metadata": {"name": "digits-worker-0"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        uid = (await w.submit(squatter, PODS))["metadata"]["uid"]
        await w.submit(gang())
        await w.start()
        event = await w.event("FailedCreatePod")
        assert "digits-worker-0" in event["message"]
        assert event["type"] == "Warning"
        assert (await w.api.get(f"{PODS}/digits-worker-0")).ok()["metadata"]["uid"] == uid
        jobs = await w.eventually(JOBS, lambda jobs: replica_failure(jobs.get("digits", {}))[0] == "True")
        assert '"digits-worker-0" exists already' in replica_failure(jobs["digits"])[1]
        await w.event("FailedCreatePod", count=2)
        assert len([e for e in (await w.api.get(EVENTS)).ok()["items"] if e["reason"] == "FailedCreatePod"]) == 1
        (await w.api.delete(f"{PODS}/digits-worker-0", {"gracePeriodSeconds": 0})).ok()
        pods = await w.eventually(
            PODS, lambda pods: len(pods) == 5 and all("labels" in p["metadata"] for p in pods.values())
        )
        assert pods["digits-worker-0"]["metadata"]["uid"] != uid
        await w.eventually(JOBS, lambda jobs: replica_failure(jobs.get("digits", {}))[0] == "False")


def replica_failure(job):
    """Status and message of the condition ReplicaFailure."""
    found = [c for c in job.get("status", {}).get("conditions", ()) if c["type"] == "ReplicaFailure"]
    return (found[0]["status"], found[0]["message"]) if found else ("", "")


async def test_a_pod_that_the_server_can_never_accept_ends_its_job_in_the_servers_words(tmp_path):
    async with world(tmp_path) as w:
        prepare = [{"name": "no label!", "image": "busybox"}]
        wrong = submitted(make_mxjob("bad").gang(1, 2).template(names.WORKER, initContainers=prepare))
        wrong["spec"]["runPolicy"] = {"cleanPodPolicy": "Running"}
        await w.submit(wrong)
        event = await w.event("FailedCreatePod")
        assert "spec.initContainers[0].name" in event["message"]
        bad = await w.state("bad", "Failed")
        assert event["message"].removeprefix("Error creating: ") in bad["status"]["conditions"][-1]["message"]
        assert (await w.event("MXJobFailed"))["message"] == bad["status"]["conditions"][-1]["message"]
        await w.eventually(PODS, lambda pods: not pods)


async def test_a_job_whose_container_has_another_name_fails_with_that_before_it_has_a_pod(tmp_path):
    """The API server takes it (docs/decisions/api.md)."""
    async with world(tmp_path) as w:
        manifest = submitted(make_mxjob("bad").worker(1))
        manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "main"
        await w.submit(manifest)
        failed = (await w.state("bad", "Failed"))["status"]["conditions"][-1]
        assert failed["reason"] == "MXJobFailedValidation"
        assert "containers: Invalid value: one of them must be named mxnet" in failed["message"]
        assert not await w.names(PODS)


async def test_the_scheduler_is_created_once_all_others_are_and_not_before(tmp_path):
    """While it has never existed nobody can have joined, so that whoever is missing may be created."""
    async with world(tmp_path) as w:
        taken = {"metadata": {"name": "bad-worker-1"}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
        (await w.api.post(w.path(PODS), taken)).ok()
        await w.submit(submitted(make_mxjob("bad").gang()))
        await w.event("FailedCreatePod")
        assert "bad-scheduler-0" not in await w.names(PODS)
        await w.submit(submitted(make_mxjob("good").gang()))
        created = await w.eventually(PODS, lambda pods: sum(name.startswith("good-") for name in pods) == 5)
        versions = {name: int(pod["metadata"]["resourceVersion"]) for name, pod in created.items() if "good-" in name}
        assert max(versions, key=versions.__getitem__) == "good-scheduler-0"


async def test_what_the_server_warns_of_becomes_an_event(tmp_path):
    async with world(tmp_path) as w:
        await w.submit(submitted(make_mxjob("odd").worker(2).template(names.WORKER, bogus=1)))
        assert "bogus" in (await w.event("ServerWarning"))["message"]
        await w.pods(2)


async def test_an_event_that_changes_nothing_a_decision_rests_on_enqueues_no_job(tmp_path, monkeypatch):
    async with world(tmp_path) as w:
        await w.submit(submitted(make_mxjob("a").worker(1)))
        (pod,) = await w.pods(1)
        await w.move([pod], "Running")
        job = await w.state("a", "Running")
        jobs, pods = w.controller._jobs[0].cache, w.controller._children[0].caches.pods
        await until(lambda: jobs.resource_version >= int(job["metadata"]["resourceVersion"]))
        added = []
        monkeypatch.setattr(w.controller.queue, "add", added.append)
        changed = (await w.api.merge(f"{PODS}/{pod}", {"metadata": {"annotations": {"a": "b"}}})).ok()
        await until(lambda: pods.resource_version >= int(changed["metadata"]["resourceVersion"]))
        assert added == []
        await w.move([pod], "Succeeded", exit_code=0)
        await until(lambda: added)
