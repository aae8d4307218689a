"""A step that our own command line follows: what it tells, and what becomes of its job when it is ended."""

import asyncio
import json

import pytest
from aiohttp import web
from argo_fixtures import (
    COMMAND,
    CORE,
    NAMESPACE,
    TEMPLATES,
    attempts_at,
    keeping,
    messages_of,
    node_of,
    one_runner,
    outputs_of,
    uids,
)
from argo_fronts import LosesReply
from audit import Right, granted, requests_of
from deployment import rendered
from served_requests import served_requests
from waiting import SECONDS, eventually, until

from mxnet_argo import MXJobSpec

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec", "argo"),
    pytest.mark.asyncio(loop_scope="module"),
]

RUNNER = "mxjob-runner"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{RUNNER}"
RESULT = '{"accuracy": 0.99, "note": "a \\"quoted\\" word"}'


def exit_codes(workflow):
    return [attempt["outputs"]["exitCode"] for attempt in attempts_at(workflow, "train")]


async def succeeds_with(argo, name, job):
    """The run ends well with this very job and no other."""
    await argo.end(job)
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded", messages_of(done, "train")
    assert uids(await argo.jobs(name)) == [job["metadata"]["uid"]]
    return done


class TestEndsOfTheJob:
    async def test_a_runner_succeeds_with_its_job_and_reports_its_outputs(self, argo):
        name = await argo.submit(one_runner(spec=MXJobSpec(**lone(), **keeping("models"))))
        job = await argo.job(name)
        await argo.end(job, message=RESULT)
        done = await argo.finished(name)
        assert done["status"]["phase"] == "Succeeded"
        outputs = outputs_of(node_of(done, "train"))
        assert outputs["job"] == job["metadata"]["name"]
        assert outputs["state"] == "Succeeded"
        assert outputs["message"] == f"MXJob {outputs['job']} is successfully completed."
        assert json.loads(outputs["result"]) == json.loads(RESULT)
        assert outputs["files"] == "claim models at /models"
        assert uids(await argo.jobs(name)) == [job["metadata"]["uid"]]

    async def test_a_job_that_fails_fails_the_runner_once_which_says_why_and_makes_a_new_job_when_retried(self, argo):
        name = await argo.submit(one_runner())
        job = await argo.job(name)
        await argo.end(job, exit_code=1, message="ValueError: boom")
        done = await argo.finished(name)
        assert done["status"]["phase"] == "Failed"
        (attempt,) = attempts_at(done, "train")
        assert attempt["outputs"]["exitCode"] == "1"
        assert "ValueError: boom" in attempt["message"]
        outputs = outputs_of(attempt)
        assert (outputs["job"], outputs["state"]) == (job["metadata"]["name"], "Failed")
        assert "ValueError: boom" in outputs["message"]
        await argo.no_jobs(name)

        await argo.command("retry", name)

        again = await argo.job(name)
        assert again["metadata"]["name"] == job["metadata"]["name"]
        assert again["metadata"]["uid"] != job["metadata"]["uid"]
        await succeeds_with(argo, name, again)


@pytest.mark.exhaustive
async def test_the_page_of_a_job_is_an_artifact_of_the_runner(argo):
    stored = {}

    async def object_store(request):
        """As much of S3 as one upload asks for."""
        if request.method == "PUT":
            stored[request.path] = await request.read()
            return web.Response(headers={"ETag": '"1"'})
        return web.Response(status=404)

    key = {"name": "store", "key": "key"}
    (await argo.api.post(f"{CORE}/secrets", {"metadata": {"name": "store"}, "stringData": {"key": "any"}})).ok()
    async with served_requests(object_store) as port:
        s3 = {
            "endpoint": f"127.0.0.1:{port}",
            "bucket": "artifacts",
            "region": "any",
            "insecure": True,
            "accessKeySecret": key,
            "secretKeySecret": key,
        }
        repository = {"metadata": {"name": "store"}, "data": {"s3": json.dumps({"s3": s3})}}
        (await argo.api.post(f"{CORE}/configmaps", repository)).ok()
        made = one_runner(report=True).to_dict()
        made["spec"]["artifactRepositoryRef"] = {"configMap": "store", "key": "s3"}
        name = await argo.submit(made)
        job = await argo.job(name)
        await succeeds_with(argo, name, job)
    ((path, page),) = stored.items()
    assert path.endswith("/report.html")
    assert f"<title>{job['metadata']['name']}".encode() in page


class TestEndsOfTheRunner:
    async def test_a_runner_whose_pod_is_evicted_leaves_its_job_to_the_next(self, argo):
        name = await argo.submit(one_runner())
        job = await argo.job(name)
        path = argo.path("mxjobs", job["metadata"]["name"])
        (await argo.api.merge(path, {"spec": {"runPolicy": {"activeDeadlineSeconds": 5000}}})).ok()
        assert await argo.evict(await argo.poller(name))
        await succeeds_with(argo, name, job)
        after = (await argo.api.get(path)).ok()
        assert after["spec"]["runPolicy"]["activeDeadlineSeconds"] == 5000, "a runner sets back what others changed"

    @pytest.mark.exhaustive
    async def test_a_create_whose_reply_is_lost_is_no_second_job(self, argo):
        manifest = one_runner().to_dict()
        manifest["metadata"] = {"name": "runner-loses-a-reply"}
        async with LosesReply(argo.server, argo.api).served() as front:
            argo.pods.servers["runner-loses-a-reply"] = front.url
            name = await argo.submit(manifest)
            job = await argo.job(name)
            await argo.end(job)
            done = await argo.finished(name)
            assert len(front.lost) == 1
        assert exit_codes(done) == ["0"]
        assert uids(await argo.jobs(name)) == [job["metadata"]["uid"]]


class TestEndsOfTheWorkflow:
    """Without the exit handler: what deletes the job is the runner."""

    async def test_a_workflow_that_is_shut_down_deletes_its_job(self, argo):
        name = await argo.submit(one_runner(cleanup=False))
        await argo.job(name)
        await argo.shut_down(name, "Stop")
        await argo.no_jobs(name)
        assert (await argo.finished(name))["status"]["phase"] == "Failed"

    @pytest.mark.exhaustive
    async def test_a_step_whose_time_is_over_deletes_its_job_and_is_not_tried_again(self, argo):
        name = await argo.submit(one_runner(cleanup=False, timeout="30s"))
        await argo.job(name)
        await argo.no_jobs(name)
        done = await argo.finished(name)
        assert done["status"]["phase"] == "Failed"
        assert exit_codes(done) == ["124"]
        assert "longer than the specified deadline" in messages_of(done, "train")[0]


class TestRights:
    async def test_a_runner_that_may_not_make_jobs_fails_with_the_right_that_it_lacks(self, argo):
        account = await argo.account("runner-cannot-create", ["get", "list", "watch", "delete"])
        name = await argo.submit(one_runner(service_account_name=account))
        done = await argo.finished(name)
        assert exit_codes(done) == ["3"]
        assert 'cannot create resource "mxjobs"' in messages_of(done, "train")[0]

    @pytest.mark.exhaustive
    async def test_a_runner_that_may_not_see_pods_follows_its_job_without_a_log(self, argo):
        account = await argo.account("runner-sees-no-pods", ["get", "list", "watch", "create"])
        name = await argo.submit(one_runner(service_account_name=account))
        await succeeds_with(argo, name, await argo.job(name))

    @pytest.mark.exhaustive
    async def test_a_runner_that_may_not_see_workflows_leaves_its_job_when_it_is_stopped(self, argo):
        account = await argo.account("runner-sees-no-workflows", ["get", "list", "watch", "create", "delete"])
        name = await argo.submit(one_runner(cleanup=False, service_account_name=account))
        job = await argo.job(name)
        poller = await argo.poller(name)
        await argo.shut_down(name, "Terminate")
        ended = await argo.until("pods", lambda pods: code_of(pods.get(poller)) is not None)
        assert code_of(ended[poller]) == 143
        assert uids(await argo.jobs(name)) == [job["metadata"]["uid"]]

    @pytest.mark.exhaustive
    async def test_its_account_may_do_what_a_runner_asks_for_and_nothing_else(self, argo):
        """Made, evicted, found again and terminated: all that a runner does, from the server's audit log."""
        name = await argo.submit(one_runner(cleanup=False))
        job = await argo.job(name)
        worker = f"{job['metadata']['name']}-worker-0"
        await asked_for(argo, f"metadata.name%3D{worker}", "watch=true")
        await argo.jobs_world.move([worker], "Running")
        await asked_for(argo, f"/pods/{worker}/log?")
        second = await argo.evict(await argo.poller(name))
        await until(lambda: "following it" in argo.pods.log(second), within=SECONDS)
        await argo.shut_down(name, "Terminate")
        await argo.no_jobs(name)
        (role,) = (each for each in rendered(TEMPLATES) if (each["kind"], each["metadata"]["name"]) == ("Role", RUNNER))
        asked = requests_of(argo.server, ACCOUNT)
        of_the_report = Right("", "events", "list")  # a runner that is terminated doesn't always come to write it
        assert {request.right for request in asked} | {of_the_report} == granted([role])
        assert [request for request in asked if request.code == 403] == []


async def asked_for(argo, *parts):
    """Wait for a request whose address has these parts."""
    log = argo.server.folder / "audit.log"

    def there():
        return any(all(part in line for part in parts) for line in log.read_text().splitlines())

    await asyncio.to_thread(eventually, there)


def lone():
    return {"image": "i", "command": COMMAND, "servers": 0}


def code_of(pod):
    """What a pod's main container has ended with."""
    statuses = (pod or {}).get("status", {}).get("containerStatuses", [])
    return next((s["state"].get("terminated", {}).get("exitCode") for s in statuses if s["name"] == "main"), None)
