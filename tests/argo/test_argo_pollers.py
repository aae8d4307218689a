"""What becomes of a step's job when whoever polls for it is killed, misled, or not allowed to."""

import json

import pytest
from argo_fixtures import NAMESPACE, TEMPLATES, messages_of, one_training, uids
from argo_fronts import LosesReply
from audit import Right, granted, requests_of
from deployment import rendered

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec"),
    pytest.mark.asyncio(loop_scope="module"),
]

ACCOUNT = "mxjob-workflow"
NAMESPACES = Right("", "namespaces", "get")
"""The kubectl within argoexec asks for its namespace, and takes a no."""
VERBS = ("get", "list", "create", "patch", "delete")


async def succeeds_with(argo, name, job):
    """The run ends well with this very job and no other."""
    await argo.end(job)
    assert (await argo.finished(name))["status"]["phase"] == "Succeeded"
    assert uids(await argo.jobs(name)) == [job["metadata"]["uid"]]


async def succeeds_though_its_poller_is_killed(argo, workflow):
    """Another poller takes the place of the killed one, and finds its job again."""
    name = await argo.submit(workflow)
    job = await argo.job(name)
    first = await argo.poller(name)
    argo.kill(first)
    assert await argo.poller(name, other_than=first)
    await succeeds_with(argo, name, job)


async def test_a_poller_that_is_killed_finds_its_job_again(argo):
    await succeeds_though_its_poller_is_killed(argo, one_training())


async def test_a_killed_poller_is_replaced_whatever_an_organisations_template_defaults_say(argo):
    made = one_training().to_dict()
    made["spec"]["templateDefaults"] = {
        "retryStrategy": {"limit": 1, "retryPolicy": "OnError", "backoff": {"duration": "1m", "maxDuration": "1s"}}
    }
    await succeeds_though_its_poller_is_killed(argo, made)


async def test_a_step_waits_for_a_quota(argo):
    quotas = argo.path("mxjobs").replace("apis/kubeflow.org/v1", "api/v1").replace("mxjobs", "resourcequotas")
    none = {"hard": {"count/mxjobs.kubeflow.org": "0"}}
    (await argo.api.post(quotas, {"metadata": {"name": "few"}, "spec": none})).ok()
    status = {"status": {**none, "used": {"count/mxjobs.kubeflow.org": "0"}}}
    (await argo.api.merge(f"{quotas}/few/status", status)).ok()
    try:
        made = one_training().to_dict()
        made["spec"]["serviceAccountName"] = await argo.account("meets-a-quota", list(VERBS))
        name = await argo.submit(made)

        def waits(found):
            return "exceeded quota: few" in json.dumps(found[name].get("status", {}).get("nodes", {}))

        await argo.until("workflows", waits)
    finally:
        (await argo.api.delete(f"{quotas}/few")).ok()
    await succeeds_with(argo, name, await argo.job(name))


def completed(result):
    return result["metadata"]["labels"]["workflows.argoproj.io/report-outputs-completed"] == "true"


async def waited_for(argo):
    """Return a workflow's name, its job, the first poller, the poller's result, and a query for what is the run's."""
    name = await argo.submit(one_training())
    job = await argo.job(name)
    first = await argo.poller(name)
    of_run = {"labelSelector": f"workflows.argoproj.io/workflow={name}"}
    (result,) = await argo.until("workflowtaskresults", len, **of_run)
    return name, job, first, result, of_run


@pytest.mark.exhaustive
async def test_our_controller_completes_a_killed_pollers_result_where_argos_does_not(argo):
    """On Argo 4 that never does; here, on 3.7, it stands still, and then goes on with what ours has made of it."""
    name, job, first, result, of_run = await waited_for(argo)
    with argo.stands_still():
        argo.kill(first)
        await argo.until("workflowtaskresults", lambda results: completed(results[result]), **of_run)
    told = await argo.jobs_world.event("PollerReplaced", says=first)
    assert told["involvedObject"]["name"] == job["metadata"]["name"]
    assert await argo.poller(name, other_than=first)
    await succeeds_with(argo, name, job)


@pytest.mark.exhaustive
async def test_our_controller_completes_the_result_of_a_poller_whose_pod_is_gone_with_its_node(argo):
    """Its executor says nothing more, and whoever gave up on the node has deleted the pod. Argo stands still: so do its
    own ways out, of which 3.7 sometimes takes none for 20 minutes."""
    name, job, first, result, of_run = await waited_for(argo)
    with argo.stands_still():
        lost = await argo.lose(first)
        await argo.until("workflowtaskresults", lambda results: completed(results[result]), **of_run)
    await argo.jobs_world.event("PollerReplaced", says=first)
    await argo.next_poller(lost)
    await succeeds_with(argo, name, job)


@pytest.mark.exhaustive
async def test_the_progress_of_a_training_is_that_of_its_step_and_its_workflow(argo):
    name = await argo.submit(one_training())
    job = await argo.job(name)
    await argo.poller(name)
    training = {"epoch": 2, "epochs": 6, "progressPercentage": 33}
    path = f"{argo.path('mxjobs', job['metadata']['name'])}/status"
    (await argo.api.merge(path, {"status": {"training": training}})).ok()

    def reported(found):
        status = found[name].get("status", {})
        pods = [node["progress"] for node in status.get("nodes", {}).values() if node["type"] == "Pod"]
        return pods == ["2/6"] and status["progress"] == "2/6"

    await argo.until("workflows", reported)
    await succeeds_with(argo, name, job)


@pytest.mark.exhaustive
async def test_a_poller_whose_pod_is_deleted_finds_its_job_again(argo):
    name = await argo.submit(one_training())
    job = await argo.job(name)
    (await argo.api.delete(argo.path("pods", await argo.poller(name)))).ok()
    await succeeds_with(argo, name, job)


@pytest.mark.exhaustive
async def test_a_create_whose_reply_is_lost_is_no_second_job(argo):
    """The poller itself asks again, by the same name."""
    manifest = one_training().to_dict()
    manifest["metadata"] = {"name": "loses-a-reply"}
    async with LosesReply(argo.server, argo.api).served() as front:
        argo.pods.servers["loses-a-reply"] = front.url
        name = await argo.submit(manifest)
        job = await argo.job(name)
        await succeeds_with(argo, name, job)
        assert len(front.lost) == 1


@pytest.mark.exhaustive
async def test_a_suspended_job_is_waited_for_and_a_new_poller_leaves_it_suspended(argo):
    name = await argo.submit(one_training())
    job = await argo.job(name)
    path = argo.path("mxjobs", job["metadata"]["name"])
    (await argo.api.merge(path, {"spec": {"runPolicy": {"suspend": True}}})).ok()
    await argo.until("mxjobs", lambda jobs: "Suspended" in json.dumps(jobs.get(job["metadata"]["name"])))
    first = await argo.poller(name)
    argo.kill(first)
    await argo.poller(name, other_than=first)
    of_job = f"training.kubeflow.org/job-name={job['metadata']['name']}"
    await argo.until("pods", lambda pods: not pods, labelSelector=of_job)
    (await argo.api.merge(path, {"spec": {"runPolicy": {"suspend": False}}})).ok()
    await succeeds_with(argo, name, job)


@pytest.mark.sampled
@pytest.mark.parametrize("missing", ["create", "get"])
async def test_an_account_without_a_right_fails_with_its_name_and_makes_no_job(argo, missing):
    account = await argo.account(f"cannot-{missing}", [verb for verb in VERBS if verb != missing])
    made = one_training().to_dict()
    made["spec"]["serviceAccountName"] = account
    name = await argo.submit(made)
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Failed"
    (message,) = messages_of(done, "train")
    assert "is forbidden" in message
    assert f'cannot {missing} resource "mxjobs"' in message
    listed = (await argo.api.get(argo.path("mxjobs"))).ok()["items"]
    assert name not in json.dumps([job["metadata"]["labels"] for job in listed])


@pytest.mark.exhaustive
async def test_a_new_poller_leaves_what_others_changed_in_the_job(argo):
    name = await argo.submit(one_training())
    job = await argo.job(name)
    path = argo.path("mxjobs", job["metadata"]["name"])
    changed = {"metadata": {"annotations": {"note": "mine"}}, "spec": {"runPolicy": {"activeDeadlineSeconds": 5000}}}
    (await argo.api.merge(path, changed)).ok()
    second = await argo.evict(await argo.poller(name))
    await argo.poller(name, other_than=second)
    found = (await argo.api.get(path)).ok()
    assert (deadline(found), found["metadata"]["annotations"]["note"]) == (5000, "mine")
    await succeeds_with(argo, name, job)


def deadline(job):
    return job and job["spec"]["runPolicy"]["activeDeadlineSeconds"]


@pytest.mark.exhaustive
async def test_the_account_may_do_what_steps_and_exit_handlers_ask_for_and_nothing_else(argo):
    """Made, changed by others, applied again, failed and cleared away; from the server's audit log."""
    name = await argo.submit(one_training())
    job = await argo.job(name)
    path = argo.path("mxjobs", job["metadata"]["name"])
    (await argo.api.merge(path, {"spec": {"runPolicy": {"activeDeadlineSeconds": 5000}}})).ok()
    await argo.poller(name, other_than=await argo.evict(await argo.poller(name)))
    await argo.end(job, exit_code=1)
    await argo.finished(name)
    await argo.no_jobs(name)
    (role,) = (each for each in rendered(TEMPLATES) if (each["kind"], each["metadata"]["name"]) == ("Role", ACCOUNT))
    asked = requests_of(argo.server, f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}")
    assert {request.right for request in asked} - {NAMESPACES} == granted([role])
    assert {request.right for request in asked if request.code == 403} <= {NAMESPACES}
