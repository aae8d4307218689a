"""Sweeps and pipelines as the shipped templates run them, by kubectl alone: no Python makes these workflows."""

import json

import pytest
from argo_fixtures import COMMAND, by_template, node_of, outputs_of, uids
from hera.workflows import DAG, Workflow

from mxnet_argo import mxjob_ref

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec"),
    pytest.mark.asyncio(loop_scope="module"),
]

TRIALS = [{"lr": number / 1000, "note": 'a "quoted" one'} for number in range(1, 11)]
DIVERGES = TRIALS[7]
NO_NUMBER = {3: '{"accuracy": NaN}', 4: '{"accuracy": null}', 5: "loss is nan", 6: '{"accuracy": "0.999"}', 8: "[0.5]"}
"""What trials of these indices leave, in which there is no number to compare."""
PARALLELISM = 4


def variables(job, replica_type):
    (container,) = job["spec"]["mxReplicaSpecs"][replica_type]["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"]}


@pytest.mark.exhaustive
async def test_a_sweep_chooses_the_best_although_one_fails_and_some_tell_no_number(argo):
    async def end(job):
        trial = json.loads(variables(job, "Worker")["TRIAL"])
        if trial == DIVERGES:
            await argo.end(job, exit_code=1, message="FloatingPointError: diverged")
        else:
            told = json.dumps({"accuracy": 1 - abs(trial["lr"] - 0.003), "trial": trial})
            await argo.end(job, message=NO_NUMBER.get(TRIALS.index(trial), told))

    parameters = {"image": "i", "command": json.dumps(COMMAND), "servers": "0", "trials": json.dumps(TRIALS)}
    name = await argo.submit(by_template("mxjob-sweep", **parameters))

    most = await argo.end_each(name, len(TRIALS), end, at_once=PARALLELISM)

    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded"
    assert most == PARALLELISM
    outputs = outputs_of(node_of(done, "sweep"))
    assert json.loads(outputs["best"])["result"] == {"accuracy": 1, "trial": TRIALS[2]}
    results = json.loads(outputs["results"])
    found = [each["result"]["trial"] for each in results if each["value"] is not None]
    told = [trial for index, trial in enumerate(TRIALS) if trial != DIVERGES and index not in NO_NUMBER]
    assert sorted(found, key=TRIALS.index) == told
    assert len([each for each in results if each["value"] is None]) == len(NO_NUMBER)


TRAINING = {
    "image": "i",
    "command": json.dumps(COMMAND),
    "args": '["--note", "a \\"quoted\\" one"]',
    "env": '[{"name": "A", "value": "b: {c}"}]',
    "workers": "2",
    "servers": "3",
    "resources": '{"requests": {"cpu": "2"}}',
}


@pytest.mark.sampled
@pytest.mark.parametrize(("template", "cluster"), [("mxjob-train", True), ("mxjob-runner", False)])
async def test_a_training_template_takes_lists_numbers_and_resources_as_text(argo, template, cluster):
    name = await argo.submit(by_template(template, cluster=cluster, **TRAINING))
    job = await argo.job(name)
    replicas = job["spec"]["mxReplicaSpecs"]
    assert {kind: spec["replicas"] for kind, spec in replicas.items()} == {"Scheduler": 1, "Server": 3, "Worker": 2}
    (container,) = replicas["Worker"]["template"]["spec"]["containers"]
    assert container["args"] == ["--note", 'a "quoted" one']
    assert container["env"] == [{"name": "A", "value": "b: {c}"}]
    assert container["resources"] == {"requests": {"cpu": "2"}}
    await argo.end(job, message="0.5")
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded"
    assert outputs_of(node_of(done, "train" if template == "mxjob-train" else "run"))["result"] == "0.5"


@pytest.mark.exhaustive
async def test_whoever_submits_a_template_can_have_failed_jobs_kept(argo):
    jobs = {}
    for choice in ("keep", "delete"):
        name = await argo.submit(by_template("mxjob-train", image="i", command=json.dumps(COMMAND), on_failure=choice))
        jobs[choice] = name, await argo.job(name)
        await argo.end(jobs[choice][1], exit_code=1)
        assert (await argo.finished(name))["status"]["phase"] == "Failed"
    await argo.no_jobs(jobs["delete"][0])
    name, kept = jobs["keep"]
    assert uids(await argo.jobs(name)) == [kept["metadata"]["uid"]]


@pytest.mark.exhaustive
async def test_a_failed_job_is_kept_for_as_long_as_its_submitter_says_and_then_deleted(argo):
    parameters = {"image": "i", "command": json.dumps(COMMAND), "keep_failed_for": "15s"}
    name = await argo.submit(by_template("mxjob-train", **parameters))
    job = await argo.job(name)
    await argo.end(job, exit_code=1)

    def waits(runs):
        return any(node.get("templateName") == "mxjob-keep" for node in runs[name]["status"].get("nodes", {}).values())

    await argo.until("workflows", waits, fieldSelector=f"metadata.name={name}")
    kept = await argo.jobs(name)
    assert (uids(kept), kept[job["metadata"]["name"]]["status"]["state"]) == ([job["metadata"]["uid"]], "Failed")

    await argo.no_jobs(name)
    assert (await argo.finished(name))["status"]["phase"] == "Failed"


@pytest.mark.exhaustive
async def test_a_workflow_lowers_how_many_trials_run_at_once_and_chooses_the_lowest_of_another_number(argo):
    """`parallelism` takes no parameter of Argo's; what the Workflow has of its own holds for the run."""
    parameters = {"image": "i", "command": json.dumps(COMMAND), "servers": "0", "trials": "[3, 1, 2]"}
    run = by_template("mxjob-sweep", metric="val-loss", direction="minimize", **parameters)
    text = {**run, "spec": {**run["spec"], "parallelism": "{{workflow.parameters.parallelism}}"}}
    refused = await argo.api.post(argo.path("workflows"), text)
    assert (refused.code, "spec.parallelism" in json.dumps(refused.body)) == (422, True)

    run["spec"]["parallelism"] = 1
    name = await argo.submit(run)

    async def end(job):
        await argo.end(job, message=json.dumps({"val-loss": json.loads(variables(job, "Worker")["TRIAL"])}))

    assert await argo.end_each(name, 3, end) == 1
    outputs = outputs_of(node_of(await argo.finished(name), "sweep"))
    assert json.loads(outputs["best"])["value"] == 1
    assert [each["value"] for each in json.loads(outputs["results"])] == [3, 2, 1]


@pytest.mark.exhaustive
async def test_a_workflow_of_ones_own_hands_a_result_to_a_template_of_the_cluster_as_one_argument(argo):
    """The runner's account is its template's: the workflow runs as one that may not see pods."""
    arguments = {"image": "i", "command": COMMAND, "servers": 0}
    account = {"service_account_name": "mxjob-workflow"}
    with Workflow(generate_name="refers-", entrypoint="both", **account) as made, DAG(name="both"):
        first = mxjob_ref("first", "mxjob-train", arguments, cluster_scope=True)
        args = ["--from", first.get_parameter("result")]
        first >> mxjob_ref("second", "mxjob-runner", {**arguments, "args": args}, cluster_scope=True)
    name = await argo.submit(made)
    jobs = []

    async def end(job):
        jobs.append(job)
        await argo.end(job, message='a","--epochs","999')

    await argo.end_each(name, 2, end)

    assert (await argo.finished(name))["status"]["phase"] == "Succeeded"
    (container,) = jobs[1]["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["args"] == ["--from", 'a","--epochs","999']
