"""Parameters of the shipped templates that are no JSON and no numbers: they fail the step, and train nothing."""

import asyncio
import json

import pytest
import pytest_asyncio
from argo_fixtures import COMMAND, attempts_at, by_template
from tiers import asked_for

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
ENTRIES = {"mxjob-train": "train", "mxjob-runner": "run"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ended(request, argo):
    """The runs that the tests ask for, all at once, when they are over."""

    async def end(template, parameter):
        given = {"image": "i", "command": json.dumps(COMMAND), parameter: WRONG[parameter][0]}
        name = await argo.submit(by_template(template, **given))
        return name, await argo.finished(name)

    asked = list(zip(asked_for(request, "template"), asked_for(request, "parameter"), strict=True))
    return dict(zip(asked, await asyncio.gather(*(end(*each) for each in asked)), strict=True))


@pytest.mark.sampled
@pytest.mark.parametrize("parameter", WRONG)
@pytest.mark.parametrize("template", ENTRIES)
async def test_a_parameter_that_cannot_be_read_fails_the_step_at_once_by_its_field_and_makes_no_job(
    argo, ended, template, parameter
):
    name, workflow = ended[template, parameter]
    assert workflow["status"]["phase"] == "Failed"
    (attempt,) = attempts_at(workflow, ENTRIES[template])
    assert WRONG[parameter][1] in attempt["message"]
    if template == "mxjob-runner":
        assert attempt["outputs"]["exitCode"] == "2"
    await argo.no_jobs(name)
