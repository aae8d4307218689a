"""One MXJob as a step of a real Argo workflow: what the step tells, and what Argo makes of its parameters."""

import asyncio
import base64
import json

import pytest
from argo_fixtures import COMMAND, keeping, messages_of, node_of, one_runner, one_training, outputs_of, uids
from argo_values import HOSTILE
from hera.workflows import Parameter, Workflow
from hera.workflows.models import ValueFrom

from mxnet_argo import MXJobSpec, MXJobStep, text

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec"),
    pytest.mark.asyncio(loop_scope="module"),
]

RESULT = '{"accuracy": 0.99, "note": "a \\"quoted\\" word"}'


async def test_a_step_succeeds_with_its_job_and_reports_its_outputs(argo):
    spec = MXJobSpec(image="i", command=COMMAND, servers=0, **keeping("models"))
    name = await argo.submit(one_training(spec=spec))
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


ACCURACY = Parameter(name="accuracy", value_from=ValueFrom(jq_filter=".status.result | fromjson | .accuracy"))


async def test_an_output_of_the_authors_own_is_read_of_the_finished_job(argo):
    name = await argo.submit(one_training(outputs=[ACCURACY]))
    await argo.end(await argo.job(name), message=RESULT)
    assert outputs_of(node_of(await argo.finished(name), "train"))["accuracy"] == "0.99"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("exit_code", "said"), [(1, "failed: "), (0, "error: output accuracy: fromjson cannot be applied")]
)
async def test_an_output_of_the_authors_own_that_has_no_value_takes_no_further_attempt(argo, exit_code, said):
    name = await argo.submit(one_training(outputs=[ACCURACY]))
    await argo.end(await argo.job(name), exit_code=exit_code, message="no JSON")
    (message,) = messages_of(await argo.finished(name), "train")
    assert said in message


SUCCEEDED = "status.state == Succeeded"
RESTARTED = "status.restarts > 5"
CONDITIONS = [
    ({"success_condition": SUCCEEDED}, 1, "status.state == [Failed]"),
    ({"success_condition": SUCCEEDED, "failure_condition": RESTARTED}, 1, "status.state == [Failed]"),
    ({"success_condition": SUCCEEDED, "failure_condition": RESTARTED}, 0, None),
    ({"success_condition": "status.restarts > 0"}, 1, "status.state == [Failed]"),
    ({"success_condition": "status.completionTime"}, 0, None),
]
"""Conditions of the author's own, the exit code of the job's worker, and the condition that fails the step, if any."""


@pytest.mark.exhaustive
async def test_a_step_with_conditions_of_its_authors_ends_when_its_job_is_over(argo):
    async def ended(conditions, exit_code):
        name = await argo.submit(one_training(**conditions))
        await argo.end(await argo.job(name), exit_code=exit_code)
        return await argo.finished(name)

    done = await asyncio.gather(*(ended(conditions, exit_code) for conditions, exit_code, _ in CONDITIONS))
    for workflow, (conditions, _, why) in zip(done, CONDITIONS, strict=True):
        (message,) = messages_of(workflow, "train")
        assert workflow["status"]["phase"] == ("Failed" if why else "Succeeded"), (conditions, message)
        assert message == "" if why is None else f"failure condition '{{{why}}}' evaluated true" in message, message


@pytest.mark.exhaustive
@pytest.mark.parametrize("made_of", [one_training, one_runner])
async def test_no_parameter_breaks_out_of_its_place(argo, made_of):
    values = {f"p{number}": value for number, value in enumerate(HOSTILE)}
    spec = MXJobSpec(image="i", command=COMMAND, servers=0, args=["--all=" + text("p0"), *map(text, values)])
    made = made_of(spec=spec, inputs=[Parameter(name=name) for name in values])
    made.arguments = [Parameter(name=name, value=value) for name, value in values.items()]
    job = await argo.job(await argo.submit(made))
    (container,) = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["args"] == [f"--all={HOSTILE[0]}", *HOSTILE]
    assert set(job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]) == {"containers"}


@pytest.mark.exhaustive
async def test_tags_within_tags_in_a_parameter_stay_in_its_place(argo):
    """Argo reads arguments as templates, in several passes; whatever it makes of one, a text stays one text."""
    payload, layers = '"\n- injected', ["{{workflow.parameters.payload}}"]
    for _ in range(4):
        layers.append(f"{{{{=sprig.b64dec('{base64.b64encode(layers[-1].encode()).decode()}')}}}}")
    inputs = [Parameter(name=f"p{number}") for number in range(len(layers))]
    spec = MXJobSpec(image="i", command=COMMAND, servers=0, args=[text(each.name) for each in inputs])
    with Workflow(
        generate_name="tags-",
        entrypoint="train",
        service_account_name="mxjob-workflow",
        arguments=[
            Parameter(name="payload", value=payload),
            *(Parameter(name=each.name, value=layer) for each, layer in zip(inputs, layers, strict=True)),
        ],
    ) as made:
        MXJobStep(name="train", spec=spec, inputs=inputs)
    name = await argo.submit(made)
    job = await argo.job(name)
    (container,) = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    found = await argo.until("workflows", lambda found: "train" in str(found[name].get("status", {}).get("nodes")))
    assert len(messages_of(found[name], "train")) == 1
    assert len(container["args"]) == len(layers)
    assert set(container["args"]) <= {payload, *layers}


def training_of(size):
    """A training whose manifest has a variable of so many characters."""
    return one_training(spec=MXJobSpec(image="i", command=COMMAND, servers=0, env={"LONG": "x" * size}))


@pytest.mark.exhaustive
async def test_a_manifest_of_100_kb_is_applied_whole(argo):
    job = await argo.job(await argo.submit(training_of(100_000)))
    (container,) = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "LONG", "value": "x" * 100_000}]


@pytest.mark.exhaustive
async def test_a_longer_one_than_fits_a_variable_fails_the_step_for_want_of_a_right_of_argos(argo):
    """Argo would pass it on by a ConfigMap, which its own roles don't let its controller make."""
    name = await argo.submit(training_of(140_000))
    done = await argo.finished(name)
    assert done["status"]["phase"] in {"Failed", "Error"}
    (message,) = messages_of(done, "train")
    assert "configmaps is forbidden" in message
    await argo.no_jobs(name)
