"""Katib's Experiment in docs/tuning.md, as far as Katib's own rules can be asked without it."""

import json
import re
import subprocess
from pathlib import Path

import msgspec
import pytest
import yaml
from apiserver_objects import binding
from builders import make_mxjob
from controller_fixtures import PODS, submitted, world
from kubernetes_programs import programs_or_skip
from log_sources import ScriptedLogs

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.validation import decode, template_errors, validate
from mxnet_operator.builders import build_pod
from mxnet_operator.integrations.worker_logs import WorkerLogs

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "tuning.md").read_text(encoding="utf-8")
SPEC = yaml.safe_load(re.findall(r"```yaml\n(.*?kind: Experiment.*?)```", PAGE, re.DOTALL)[0])["spec"]
TRIAL = SPEC["trialTemplate"]
METRICS_FORMAT = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
"""DefaultFilter of Katib's pkg/metricscollector/v1beta1/common."""


def trial():
    """The job of a trial, as Katib fills in its parameters and its name."""
    text = json.dumps(TRIAL["trialSpec"])
    for each in TRIAL["trialParameters"]:
        assert each["reference"] in {parameter["name"] for parameter in SPEC["parameters"]}
        assert f"${{trialParameters.{each['name']}}}" in text
        text = text.replace(f"${{trialParameters.{each['name']}}}", "0.01")
    assert "trialParameters" not in text
    return {**json.loads(text), "metadata": {"name": "digits-x7k2m9qd", "namespace": "team"}}


def test_a_trial_is_a_valid_job_and_its_primary_pod_is_worker_0_which_logs_the_metric():
    assert [*validate(trial()), *template_errors(trial())] == []
    job = with_defaults(decode(trial()))
    primary = [
        (type_, index)
        for type_, index in (("Scheduler", 0), ("Server", 0), ("Worker", 0), ("Worker", 1))
        if TRIAL["primaryPodLabels"].items() <= build_pod(job, type_, index, 0)["metadata"]["labels"].items()
    ]
    assert primary == [("Worker", 0)]
    containers = build_pod(job, "Worker", 0, 0)["spec"]["containers"]
    assert TRIAL["primaryContainerName"] in {each["name"] for each in containers}
    line = "INFO:root:Epoch[3] Validation-accuracy=0.981250"
    assert [found[:2] for found in re.findall(METRICS_FORMAT, line)] == [
        (SPEC["objective"]["objectiveMetricName"], "0.981250")
    ]


@pytest.mark.programs("katib-conditions")
async def test_katib_reads_from_each_status_of_a_job_whether_its_trial_is_over(tmp_path):
    poor = {"metric": "validation_accuracy", "startEpoch": 0, "below": 0.5}
    logs = ScriptedLogs("Epoch[0] Validation-accuracy=0.1")
    async with world(tmp_path, start=False, log_source=logs) as w:
        await w.start(integrations=[WorkerLogs(look_every=0.05)])
        jobs = {
            "good": make_mxjob("good").worker(1).restart("OnFailure"),
            "bad": make_mxjob("bad").worker(1),
            "poor": make_mxjob("poor").worker(1).run_policy(earlyStopping=poor),
            "done": make_mxjob("done").worker(1),
            "held": make_mxjob("held").worker(1).run_policy(suspend=True),
        }
        for job in jobs.values():
            await w.submit(submitted(job))
        seen = [await w.state("held", "Suspended"), await w.state("good", "Created")]
        pods = await w.pods(4)
        for name in pods:
            (await w.api.post(f"{PODS}/{name}/binding", binding(name, "node"))).ok()
        await w.move(pods, "Running")
        seen += [await w.state("good", "Running"), await w.state("poor", "Succeeded")]
        await w.move(["good-worker-0", "bad-worker-0"], "Failed", exit_code=3)
        await w.move(["done-worker-0"], "Succeeded", exit_code=0)
        seen += [
            await w.state("good", "Restarting"),
            await w.state("bad", "Failed"),
            await w.state("done", "Succeeded"),
        ]
    assert [(each["condition"], each["reason"]) for each in katib(seen)] == [
        ("Running", ""),
        ("Running", ""),
        ("Running", ""),
        ("Succeeded", "EarlyStopped"),
        ("Running", ""),
        ("Failed", "MXJobFailed"),
        ("Succeeded", "MXJobSucceeded"),
    ]


def katib(jobs):
    """What Katib makes of jobs, by its own evaluation of the conditions on the page."""
    conditions = {"success": TRIAL["successCondition"], "failure": TRIAL["failureCondition"]}
    asked = "\n".join(json.dumps({**conditions, "object": job}) for job in jobs)
    program = programs_or_skip(["katib-conditions"])["katib-conditions"]
    done = subprocess.run([program], input=asked, capture_output=True, text=True, check=True)
    return [msgspec.json.decode(line) for line in done.stdout.splitlines()]
