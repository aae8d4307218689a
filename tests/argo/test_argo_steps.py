"""One MXJob as a step of a real Argo workflow: every row of the table in docs/argo.md."""

import asyncio
import json
import os
import signal

import pytest
from argo_fixtures import node_of, outputs_of
from hera.workflows import Parameter, Workflow

from mxnet_argo import MXJobSpec, MXJobStep, delete_jobs_on_exit, text

pytestmark = pytest.mark.kubernetes("workflow-controller", "argoexec")

COMMAND = ["python", "train.py"]
RESULT = '{"accuracy": 0.99, "note": "a \\"quoted\\" word"}'


def workflow(**fields):
    """A workflow that is one training of a lone worker, with the exit handler."""
    with Workflow(generate_name="one-", entrypoint="train", service_account_name="mxjob-workflow") as made:
        MXJobStep(**{"name": "train", "spec": MXJobSpec(image="i", command=COMMAND, servers=0), **fields})
    delete_jobs_on_exit(made)
    return made


async def poller(argo, name, phase="Running"):
    """The pod that polls for the job of a workflow."""
    label = {"labelSelector": f"workflows.argoproj.io/workflow={name},workflows.argoproj.io/completed=false"}

    def running(found):
        return [each for each in found.values() if each["status"]["phase"] == phase]

    return running(await argo.until("pods", running, **label))[0]


async def test_a_step_succeeds_with_its_job_and_reports_state_message_and_result(argo):
    name = await argo.submit(workflow())
    job = await argo.job(name)
    await argo.end(job, message=RESULT)
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded"
    outputs = outputs_of(node_of(done, "train"))
    assert outputs["job"] == job["metadata"]["name"]
    assert outputs["state"] == "Succeeded"
    assert outputs["message"] == f"MXJob {outputs['job']} is successfully completed."
    assert json.loads(outputs["result"]) == json.loads(RESULT)
    assert len(await argo.jobs(name)) == 1


async def test_a_job_that_fails_fails_the_step_at_once_and_is_cleared_away(argo):
    name = await argo.submit(workflow())
    await argo.end(await argo.job(name), exit_code=1, message="ValueError: boom")
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Failed"
    node = node_of(done, "train")
    assert "failure condition '{status.state == [Failed]}' evaluated true" in node["message"]
    assert len(node["children"]) == 1
    await argo.no_jobs(name)


async def test_a_poller_that_is_killed_finds_its_job_again(argo):
    name = await argo.submit(workflow())
    job = await argo.job(name)
    first = (await poller(argo, name))["metadata"]["name"]
    os.kill(argo.pods.process(first), signal.SIGKILL)
    label = {"labelSelector": f"workflows.argoproj.io/workflow={name},workflows.argoproj.io/completed"}
    await argo.until(
        "pods", lambda pods: any(p != first and v["status"]["phase"] == "Running" for p, v in pods.items()), **label
    )
    await argo.end(job)
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded"
    assert [each["metadata"]["uid"] for each in (await argo.jobs(name)).values()] == [job["metadata"]["uid"]]


async def test_a_poller_whose_pod_is_deleted_finds_its_job_again(argo):
    name = await argo.submit(workflow())
    job = await argo.job(name)
    first = (await poller(argo, name))["metadata"]["name"]
    (await argo.api.delete(argo.path("pods", first))).ok()
    await argo.end(job)
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded"
    assert [each["metadata"]["uid"] for each in (await argo.jobs(name)).values()] == [job["metadata"]["uid"]]


async def test_a_workflow_that_is_stopped_deletes_its_job(argo):
    name = await argo.submit(workflow())
    await argo.job(name)
    await poller(argo, name)
    (await argo.api.merge(argo.path("workflows", name), {"spec": {"shutdown": "Stop"}})).ok()
    await argo.no_jobs(name)
    assert (await argo.finished(name))["status"]["phase"] == "Failed"


async def test_a_workflow_that_is_terminated_leaves_its_job_until_it_is_deleted(argo):
    name = await argo.submit(workflow(deadline=3600))
    job = await argo.job(name)
    await poller(argo, name)
    (await argo.api.merge(argo.path("workflows", name), {"spec": {"shutdown": "Terminate"}})).ok()
    assert (await argo.finished(name))["status"]["phase"] == "Failed"
    (left,) = (await argo.jobs(name)).values()
    assert left["metadata"]["uid"] == job["metadata"]["uid"]
    assert left["spec"]["runPolicy"]["activeDeadlineSeconds"] == 3600
    (await argo.api.delete(argo.path("workflows", name))).ok()
    await argo.no_jobs(name)


async def test_a_step_that_takes_too_long_fails_and_its_job_is_deleted(argo):
    name = await argo.submit(workflow(timeout="5s"))
    await argo.job(name)
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Failed"
    await argo.no_jobs(name)


async def test_a_job_goes_with_its_workflow(argo):
    name = await argo.submit(workflow())
    job = await argo.job(name)
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Workflow", name)
    (await argo.api.delete(argo.path("workflows", name))).ok()
    await argo.no_jobs(name)


async def test_the_same_workflow_submitted_again_has_a_job_of_its_own(argo):
    first, second = [await argo.submit(workflow()) for _ in range(2)]
    jobs = [await argo.job(name) for name in (first, second)]
    assert len({job["metadata"]["name"] for job in jobs}) == 2


async def test_a_job_that_is_deleted_by_hand_fails_the_step_and_is_not_made_again(argo):
    name = await argo.submit(workflow())
    job = await argo.job(name)
    await poller(argo, name)
    (await argo.api.delete(argo.path("mxjobs", job["metadata"]["name"]))).ok()
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Failed"
    assert "has been deleted" in node_of(done, "train")["message"]
    await argo.no_jobs(name)


async def test_a_suspended_job_is_waited_for(argo):
    spec = MXJobSpec(image="i", command=COMMAND, servers=0, run_policy={"suspend": True})
    name = await argo.submit(workflow(spec=spec))
    job = await argo.job(name)
    assert job["status"]["state"] == "Suspended"
    await poller(argo, name)
    path = argo.path("mxjobs", job["metadata"]["name"])
    (await argo.api.merge(path, {"spec": {"runPolicy": {"suspend": False}}})).ok()
    await argo.end(job)
    assert (await argo.finished(name))["status"]["phase"] == "Succeeded"


async def test_an_account_without_rights_fails_with_their_name_and_makes_no_job(argo):
    made = workflow().to_dict()
    (await argo.api.post("/api/v1/namespaces/ml/serviceaccounts", {"metadata": {"generateName": "bare-"}})).ok()
    made["spec"]["serviceAccountName"] = "argo"
    name = await argo.submit(made)
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Failed"
    assert "is forbidden" in json.dumps(done["status"]["nodes"])
    assert (await argo.api.get(argo.path("mxjobs"))).ok()["items"] == []


HOSTILE = [
    "quotes \" and ' and `",
    "two\nlines: {yaml: true}\n- item",
    "{{workflow.name}} {{=1+1}} ${HOME} $(HOME)",
    '}}\\"\t\u2028 é 漢 </script>',
    '"], "hostPID": true, "x": ["',
]


async def test_no_parameter_breaks_out_of_its_place(argo):
    values = {f"p{number}": value for number, value in enumerate(HOSTILE)}
    spec = MXJobSpec(image="i", command=COMMAND, servers=0, args=["--all=" + text("p0"), *map(text, values)])
    inputs = [Parameter(name=name) for name in values]
    with Workflow(
        generate_name="hostile-",
        entrypoint="train",
        service_account_name="mxjob-workflow",
        arguments=[Parameter(name=name, value=value) for name, value in values.items()],
    ) as made:
        MXJobStep(name="train", spec=spec, inputs=inputs)
    job = await argo.job(await argo.submit(made))
    (container,) = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["args"] == [f"--all={HOSTILE[0]}", *HOSTILE]
    assert set(job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]) == {"containers"}


async def test_several_workers_of_a_gang_are_one_step(argo):
    name = await argo.submit(workflow(spec=MXJobSpec(image="i", command=COMMAND, workers=2)))
    job = await argo.job(name)
    await argo.end(job)
    assert (await argo.finished(name))["status"]["phase"] == "Succeeded"
    assert await asyncio.wait_for(argo.job(name), 60)
