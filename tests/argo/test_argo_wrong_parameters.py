"""Parameters of the shipped templates that are no JSON and no numbers: they fail the step, and train nothing."""

import asyncio
import json

import pytest
from argo_fixtures import COMMAND, attempts_at, by_template

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec"),
    pytest.mark.asyncio(loop_scope="module"),
]

WRONG = {
    "command": ("python train.py", "containers[0].command"),
    "args": ("--epochs 20", "containers[0].args"),
    "env": ("A=b", "containers[0].env"),
    "resources": ("{'limits': {'nvidia.com/gpu': 1}}", "containers[0].resources"),
    "workers": ("two", "mxReplicaSpecs.Worker.replicas"),
    "servers": ("-1", "mxReplicaSpecs.Server.replicas"),
    "deadline": ("1h", "runPolicy.activeDeadlineSeconds"),
    "backoff-limit": ("[]", "runPolicy.backoffLimit"),
}
"""A wrong text for each parameter, and the path of the field that the message names."""


@pytest.mark.parametrize(("template", "entry"), [("mxjob-train", "train"), ("mxjob-runner", "run")])
async def test_a_parameter_that_cannot_be_read_fails_the_step_at_once_by_its_field_and_makes_no_job(
    argo, template, entry
):
    async def ends(parameter):
        given = {"image": "i", "command": json.dumps(COMMAND), parameter: WRONG[parameter][0]}
        name = await argo.submit(by_template(template, **given))
        return name, await argo.finished(name)

    done = dict(zip(WRONG, await asyncio.gather(*map(ends, WRONG)), strict=True))

    for parameter, (name, workflow) in done.items():
        assert workflow["status"]["phase"] == "Failed", parameter
        (attempt,) = attempts_at(workflow, entry)
        assert WRONG[parameter][1] in attempt["message"], (parameter, attempt["message"])
        if entry == "run":
            assert attempt["outputs"]["exitCode"] == "2", parameter
        await argo.no_jobs(name)
