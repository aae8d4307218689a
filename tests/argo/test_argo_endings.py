"""What becomes of a step's job when its workflow, or the job itself, is ended from outside, or runs again."""

import pytest
from argo_fixtures import COMMAND, messages_of, node_of, one_training, uids
from hera.workflows import Step, Steps

from mxnet_argo import MXJobSpec, MXJobStep

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec", "argo"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.mark.exhaustive
async def test_a_terminated_workflow_leaves_a_job_that_does_not_go_with_it_until_it_is_deleted(argo):
    name = await argo.submit(one_training(deadline=3600, delete_with_workflow=False))
    job = await argo.job(name)
    await argo.shut_down(name, "Terminate")
    assert (await argo.finished(name))["status"]["phase"] == "Failed"
    left = await argo.jobs(name)
    assert uids(left) == [job["metadata"]["uid"]]
    assert left[job["metadata"]["name"]]["spec"]["runPolicy"]["activeDeadlineSeconds"] == 3600
    (await argo.api.delete(argo.path("workflows", name))).ok()
    await argo.no_jobs(name)


async def test_a_workflow_that_is_terminated_takes_its_job_along(argo):
    name = await argo.submit(one_training())
    job = await argo.job(name)
    await argo.shut_down(name, "Terminate")
    await argo.no_jobs(name)
    told = await argo.jobs_world.event("WorkflowOver", says=name)
    assert told["involvedObject"]["uid"] == job["metadata"]["uid"]
    assert f"The workflow {name} is being shut down (Terminate)" in told["message"]


async def test_argo_stop_ends_the_job_of_the_run_and_not_those_of_the_users_exit_handler(argo):
    """Our controller reads the workflow at once as the job is created."""
    made = one_training()
    made.templates.append(MXJobStep(name="report", spec=MXJobSpec(image="i", command=COMMAND, servers=0)))
    with Steps(name="mine") as mine:
        Step(name="clean-up", template="mxjob-cleanup")
        Step(name="report", template="report")
    made.templates.append(mine)
    made.on_exit = "mine"
    name = await argo.submit(made)
    trained = await argo.job(name)
    await argo.shut_down(name, "Stop")

    def replaced(jobs):
        return [job["metadata"]["name"] for job in jobs.values()] and trained["metadata"]["name"] not in jobs

    found = await argo.until("mxjobs", replaced, labelSelector=f"workflows.argoproj.io/workflow={name}")
    (report,) = found.values()
    await argo.end(await argo.job(name))
    done = await argo.finished(name)
    assert node_of(done, "report")["phase"] == "Succeeded"
    assert uids(await argo.jobs(name)) == [report["metadata"]["uid"]]


@pytest.mark.exhaustive
async def test_a_job_that_is_deleted_by_hand_fails_the_step_and_is_not_made_again(argo):
    name = await argo.submit(one_training())
    job = await argo.job(name)
    await argo.poller(name)
    (await argo.api.delete(argo.path("mxjobs", job["metadata"]["name"]))).ok()
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Failed"
    (message,) = messages_of(done, "train")
    assert "has been deleted" in message
    await argo.no_jobs(name)


async def test_a_failed_step_that_is_retried_by_hand_makes_a_new_job(argo):
    name = await argo.submit(one_training())
    failed = await argo.job(name)
    await argo.end(failed, exit_code=1)
    await argo.finished(name)
    await argo.no_jobs(name)

    await argo.command("retry", name)

    job = await argo.job(name)
    assert job["metadata"]["name"] == failed["metadata"]["name"]
    assert job["metadata"]["uid"] != failed["metadata"]["uid"]
    await argo.end(job)
    assert (await argo.finished(name))["status"]["phase"] == "Succeeded"


@pytest.mark.exhaustive
async def test_without_the_exit_handler_a_retry_by_hand_finds_the_failed_job_and_fails_again(argo):
    made = one_training()
    made.on_exit = None
    name = await argo.submit(made)
    failed = await argo.job(name)
    await argo.end(failed, exit_code=1)
    await argo.finished(name)

    await argo.command("retry", name)

    assert (await argo.finished(name))["status"]["phase"] == "Failed"
    assert uids(await argo.jobs(name)) == [failed["metadata"]["uid"]]
