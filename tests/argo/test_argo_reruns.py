"""A step that is run again by hand, with other arguments or inputs: no result of one training is told as another's."""

import json

import pytest
from argo_fixtures import COMMAND, by_template, messages_of, node_of, outputs_of, uids
from hera.workflows import DAG, Parameter, Task, Workflow

from mxnet_argo import MXJobRunner, MXJobSpec, MXJobStep, text

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec", "argo"),
    pytest.mark.asyncio(loop_scope="module"),
]

ENTRY = {"mxjob-train": "train", "mxjob-runner": "run"}
RESTART = ("--restart-successful", "--node-field-selector")


def args_of(job):
    (container,) = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    return container["args"]


@pytest.mark.sampled
@pytest.mark.parametrize("template", list(ENTRY))
async def test_a_succeeded_step_that_is_retried_with_other_arguments_trains_with_them(argo, template):
    given = {"image": "i", "command": json.dumps(COMMAND), "servers": "0"}
    name = await argo.submit(by_template(template, **given, args='["--lr", "0.1"]'))
    first = await argo.job(name)
    await argo.end(first, message="0.1")
    await argo.finished(name)

    select = f"templateName={ENTRY[template]}"
    await argo.command("retry", name, *RESTART, select, "-p", 'args=["--lr", "0.7"]')

    jobs = await argo.jobs(name, count=2)
    (second,) = (job for job in jobs.values() if job["metadata"]["uid"] != first["metadata"]["uid"])
    assert (args_of(first), args_of(second)) == (["--lr", "0.1"], ["--lr", "0.7"])
    await argo.end(second, message="0.7")
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded", done["status"]
    outputs = outputs_of(node_of(done, ENTRY[template]))
    assert (outputs["job"], outputs["result"]) == (second["metadata"]["name"], "0.7")


def evaluated_each_time(kind):
    """A training with an input that Argo evaluates anew for every attempt."""
    spec = MXJobSpec(image="i", command=COMMAND, args=[text("run-id")], servers=0)
    fields = {"name": "train", "spec": spec, "inputs": [Parameter(name="run-id")]}
    with Workflow(generate_name="varies-", entrypoint="all", service_account_name="mxjob-workflow") as made:
        step = MXJobStep(**fields) if kind == "step" else MXJobRunner(**fields, image="mxjob:test")
        step.retry_strategy.backoff.duration = "1s"
        with DAG(name="all"):
            Task(name="train", template="train", arguments={"run-id": "{{=sprig.uuidv4()}}"})
    return made


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["step", "runner"])
async def test_inputs_that_vary_make_no_second_job_and_no_finished_job_is_taken_for_theirs(argo, kind):
    name = await argo.submit(evaluated_each_time(kind))
    job = await argo.job(name)
    if kind == "step":  # whose second poller finds that its arguments differ, and whose third follows the job
        await argo.poller(name, other_than=await argo.evict(await argo.poller(name)))
    (found,) = (await argo.jobs(name)).values()
    assert (args_of(found), found["metadata"]["generation"]) == (args_of(job), job["metadata"]["generation"])
    await argo.end(job, message="0.1")
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded", messages_of(done, "train")
    assert uids(await argo.jobs(name)) == [job["metadata"]["uid"]]

    await argo.command("retry", name, *RESTART, "templateName=train")

    done = await argo.finished(name)
    assert done["status"]["phase"] == "Failed"
    words = {
        "step": "the job is finished, and its result is that of",
        "runner": "with another spec.mxReplicaSpecs than this manifest",
    }
    assert words[kind] in messages_of(done, "train")[-1]
    assert uids(await argo.jobs(name)) == [job["metadata"]["uid"]]
