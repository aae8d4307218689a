"""Every example of argo/examples on a real Argo, from its YAML; each test says what becomes of the jobs' pods."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from argo_fixtures import node_of, outputs_of

from mxnet_operator.cli.mxjob import app

pytestmark = [
    pytest.mark.kubernetes("workflow-controller", "argoexec"),
    pytest.mark.asyncio(loop_scope="module"),
]

EXAMPLES = Path(__file__).parents[2] / "argo" / "examples"


def example(name):
    return yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())


def arguments(job):
    (container,) = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    return container["args"]


@pytest.mark.sampled
@pytest.mark.parametrize("name_of_example", ["train", "runner"])
async def test_the_training_is_one_gang_with_the_epochs_of_the_workflow(argo, name_of_example):
    manifest = example(name_of_example)
    manifest["spec"]["arguments"]["parameters"][0]["value"] = "3"
    name = await argo.submit(manifest)
    job = await argo.job(name)
    assert arguments(job)[:2] == ["--epochs", "3"]
    await argo.end(job, message='{"accuracy": 0.97}')
    done = await argo.finished(name)
    assert outputs_of(node_of(done, "digits"))["result"] == '{"accuracy": 0.97}'


async def test_the_sweep_tries_each_pair_and_tells_the_best(argo):
    async def end(job):
        given = arguments(job)
        rate, batch = (given[given.index(option) + 1] for option in ("--learning-rate", "--batch-size"))
        await argo.end(job, message=json.dumps({"accuracy": float(rate) * float(batch), "pair": [rate, batch]}))

    name = await argo.submit(example("sweep"))

    most = await argo.end_each(name, 4, end, at_once=2)

    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded"
    assert most == 2
    assert json.loads(outputs_of(node_of(done, "search"))["best"])["result"]["pair"] == ["0.003", "64"]


@pytest.mark.exhaustive
async def test_the_tuning_is_followed_by_a_training_that_knows_its_result(argo):
    modes, tuned = [], '{"schedule": "a \\"quoted\\" one\\n"}'

    async def end(job):
        modes.append(job["spec"]["jobMode"])
        if modes[-1] == "MXTrain":
            (container,) = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
            (given,) = (each["value"] for each in container["env"] if each["name"] == "TUNED")
            assert json.loads(given) == json.loads(tuned)
        await argo.end(job, message=tuned)

    name = await argo.submit(example("tune_then_train"))

    await argo.end_each(name, 2, end)

    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded"
    assert modes == ["MXTune", "MXTrain"]
    assert json.loads(outputs_of(node_of(done, "tune-then-train"))["result"]) == json.loads(tuned)


@pytest.mark.exhaustive
async def test_the_night_starts_a_training_by_the_shipped_template(argo):
    """The server takes the schedule as it is; that its hour has come is said by a schedule that was just missed."""
    manifest = example("nightly")
    asked = (await argo.api.post(argo.path("cronworkflows"), manifest, dryRun="All", fieldValidation="Strict")).ok()
    assert asked["spec"]["schedules"] == ["0 3 * * *"]
    now = datetime.now(UTC)
    missed = now - timedelta(minutes=2)
    schedule = f"{missed.minute} {missed.hour} * * *"
    manifest["spec"] |= {"schedules": [schedule], "timezone": "UTC"}
    manifest["metadata"]["annotations"] = {"cronworkflows.argoproj.io/last-used-schedule": f"CRON_TZ=UTC {schedule}"}
    manifest["status"] = {"lastScheduledTime": (now - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")}
    (await argo.api.post(argo.path("cronworkflows"), manifest)).ok()

    of_it = {"labelSelector": "workflows.argoproj.io/cron-workflow=nightly"}
    (name,) = await argo.until("workflows", len, **of_it)

    await argo.end(await argo.job(name))
    assert (await argo.finished(name))["status"]["phase"] == "Succeeded"


async def test_the_workflow_that_mxjob_init_writes_trains_the_script(argo, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("print('trained')\n")
    monkeypatch.setenv("MXJOB_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    words = ["init", "train.py", "--workers", "2", "--image", "team/digits:1.0", "--", "--name", 'a "b" c']
    app(words, standalone_mode=False)

    name = await argo.submit(yaml.safe_load((tmp_path / "mxjob_workflow.yaml").read_text()))

    job = await argo.job(name)
    roles = job["spec"]["mxReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in roles.items()} == {"Scheduler": 1, "Server": 2, "Worker": 2}
    (container,) = roles["Worker"]["template"]["spec"]["containers"]
    assert (container["image"], container["command"]) == (
        "team/digits:1.0",
        ["python", "train.py", "--name", 'a "b" c'],
    )
    await argo.end(job, message="0.5")
    done = await argo.finished(name)
    assert done["status"]["phase"] == "Succeeded"
