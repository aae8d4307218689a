"""Parameters of the shipped templates that are no JSON and no numbers: they fail the step, and train nothing."""

import asyncio
import json

import pytest
from argo_fixtures import COMMAND, attempts_at, by_template, node_of

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec", "argo"),
    pytest.mark.asyncio(loop_scope="module"),
]

WRONG = {
    "command": ("python train.py", "command is no JSON list: python train.py"),
    "env": ("A=b", "env is no JSON list: A=b"),
    "workers": ("two", "workers is no whole number: two"),
    "servers": ("-1", "mxReplicaSpecs.Server.replicas: Invalid value: -1"),
    "volume-mounts": ('[{"name": "x"}]', 'volume-mounts has a name that is none of volumes: [{"name": "x"}]'),
    "backoff-limit": ("[]", "backoff-limit is no whole number: []"),
}
"""A wrong text for each parameter, and what the message says of it, once."""
OF_THE_RUNNER = ("command", "env", "servers")
"""Those that a runner is given wrong, too."""
ENTRIES = {"mxjob-train": "train", "mxjob-runner": "run"}
SWEEPS = {
    ("trials", "0.1,0.2"): "trials is no JSON list, such as [0.1, 0.2]: 0.1,0.2",
    ("trials", '["{{y}}"]'): 'trials has two braces together, which Argo would replace: ["{ {y}}"]',
    ("direction", "min"): 'direction is "min": it is maximize or minimize',
}
"""A wrong text for a parameter of a sweep, and what the message says of it."""


async def test_a_parameter_that_cannot_be_read_fails_the_step_at_once_by_its_field_and_makes_no_job(argo):
    async def end(template, parameter):
        given = {"image": "i", "command": json.dumps(COMMAND), parameter: WRONG[parameter][0]}
        name = await argo.submit(by_template(template, **given))
        return name, await argo.finished(name)

    cases = [*(("mxjob-train", each) for each in WRONG), *(("mxjob-runner", each) for each in OF_THE_RUNNER)]
    for case, (name, workflow) in zip(cases, await asyncio.gather(*(end(*each) for each in cases)), strict=True):
        template, parameter = case
        assert workflow["status"]["phase"] == "Failed", case
        (attempt,) = attempts_at(workflow, ENTRIES[template])
        assert attempt["message"].count(WRONG[parameter][1]) == 1, case
        if template == "mxjob-runner":
            assert attempt["outputs"]["exitCode"] == "2", case
        await argo.no_jobs(name)


async def test_a_sweep_of_wrong_trials_fails_at_once_in_words_and_trains_nothing(argo):
    async def end(parameter, text):
        given = {"image": "i", "command": json.dumps(COMMAND), "trials": "[1]", parameter: text}
        name = await argo.submit(by_template("mxjob-sweep", **given))
        return name, await argo.finished(name)

    ended = await asyncio.gather(*(end(*each) for each in SWEEPS))
    for (name, workflow), words in zip(ended, SWEEPS.values(), strict=True):
        assert words in node_of(workflow, "sweep-outcome")["message"]
        await argo.no_jobs(name)


async def test_a_choice_that_is_neither_ends_the_run_at_once_and_what_it_runs_with_is_shown(argo):
    given = {"image": "i:1", "command": json.dumps(COMMAND), "worker": "4"}
    for wrong, words in (
        ({"on_failure": "kep"}, "on-failure is delete or keep, not kep"),
        ({"keep_failed_for": "30min"}, "keep-failed-for is a duration such as 30m or 1h30m, not 30min"),
        ({"delete_with_workflow": "True"}, "delete-with-workflow is true or false, not True"),
    ):
        name = await argo.submit(by_template("mxjob-train", **given, **wrong))
        workflow = await argo.finished(name)
        assert workflow["status"]["phase"] == "Error", wrong
        assert words in workflow["status"]["message"]
        await argo.no_jobs(name)

    # 300 kB, of which all annotations together may have 256 KiB
    given["args"] = json.dumps(["x" * 300_000])
    long = await argo.submit(by_template("mxjob-train", **given, keep_failed_for="1h30m", on_failure="keep"))
    del given["args"]
    name = await argo.submit(by_template("mxjob-train", **given))
    job = await argo.job(name)
    words = f"image i:1, command {json.dumps(COMMAND)}, args [], workers 1"
    await argo.until("workflows", lambda found: description(found[name]) == words)
    got = await argo.command("get", name)
    assert [line.split() for line in got.splitlines() if line.strip().startswith("worker")] == [
        ["worker:", "4"],
        ["workers:", "1"],
    ]
    await argo.end(job)
    await argo.finished(name)
    cut = f"""args ["{"x" * 998}, workers 1"""
    await argo.until("workflows", lambda found: description(found[long]).endswith(cut))


def description(workflow):
    return workflow["metadata"].get("annotations", {}).get("workflows.argoproj.io/description", "")
