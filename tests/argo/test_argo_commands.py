"""Argo's own command, on a real Argo: what the page tells to type, and what `argo get` and `argo retry -p` show."""

import asyncio
import json
import os
import re
import shlex
import sys
from pathlib import Path

import argo_page
import pytest
from argo_fixtures import COMMAND, NAMESPACE, by_template
from kubernetes_programs import kubectl, programs_or_skip

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.kubernetes("workflow-controller", "argoexec", "argo", "argo-trigger"),
    pytest.mark.asyncio(loop_scope="module"),
]

ROOT = Path(__file__).parents[2]
JOB = """
apiVersion: kubeflow.org/v1
kind: MXJob
metadata: {name: digits}
spec:
  jobMode: MXTrain
  mxReplicaSpecs:
    Worker: {replicas: 1, template: {spec: {containers: [{name: mxnet, image: i, command: [python, train.py]}]}}}
"""
SUBMITTED = re.compile(r"^(?:workflow\.argoproj\.io/(\S+) created|Name: +(\S+))", re.MULTILINE)


async def typed(argo, folder, text):
    """What a shell prints that has the programs and files of which the page speaks."""
    programs = {"argo": programs_or_skip(["argo"])["argo"], "kubectl": kubectl(), "python": sys.executable}
    folder.mkdir()
    for name, program in programs.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(program)} "$@"\n')
        (folder / name).chmod(0o755)
    (folder / "argo-templates").symlink_to(ROOT / "argo" / "templates")
    (folder / "job.yaml").write_text(JOB)
    (folder / "digits.py").write_text(argo_page.programs()[0])
    path = f"{folder}:{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", text.replace("argo/templates", "argo-templates")),
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "KUBECONFIG": str(argo.server.kubeconfig())},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


def worker(job):
    spec = job["spec"]["mxReplicaSpecs"]["Worker"]
    (container,) = spec["template"]["spec"]["containers"]
    return spec["replicas"], container["image"], [*container["command"], *container.get("args", ())][:4]


PYTHON, TRAIN = ["python", "train.py"], ["python", "train.py", "--epochs"]
SHOWN = {
    "-f params.yaml": (2, "mxjob/digits:1.0", [*TRAIN, "20"]),
    "-f job.yaml": (1, "i", PYTHON),
    "python digits.py | kubectl": (2, "mxjob/digits:1.0", [*TRAIN, "20"]),
    "python digits.py | argo": (2, "mxjob/digits:1.0", [*TRAIN, "5"]),
}
"""Words of each command of the page that submits a run, and the workers of its job."""


async def test_what_the_page_tells_to_type_submits_a_run_with_the_job_that_it_means(argo, tmp_path):
    quick_start = [text.replace(" --watch", "") for text in argo_page.blocks("params.yaml")]
    texts = [*quick_start, *argo_page.blocks("kubectl create"), *argo_page.spans("python digits.py |")]

    async def made_by(words, folder):
        (text,) = {each for each in texts if words in each}
        (found,) = SUBMITTED.findall(await typed(argo, folder, text))
        return await argo.job("".join(found))

    assert [text for text in texts if not any(words in text for words in SHOWN)] == []
    jobs = await asyncio.gather(*(made_by(words, tmp_path / str(n)) for n, words in enumerate(SHOWN)))
    assert dict(zip(SHOWN, map(worker, jobs), strict=True)) == SHOWN


async def test_argo_get_says_why_a_run_failed_and_argo_retry_trains_with_another_argument(argo):
    """The run fails again then, and its exit handler has none of the arguments that the retry leaves out."""
    name = await argo.submit(by_template("mxjob-train", image="i", command=json.dumps(COMMAND), servers="0"))
    await argo.end(await argo.job(name), exit_code=1, message="ValueError: boom")
    await argo.finished(name)
    await argo.no_jobs(name)
    shown = await argo.command("get", name)
    assert "worker-0 exited with code 1:" in shown
    assert "ValueError: boom" in shown
    assert "failure condition" not in shown

    await argo.command("retry", name, "-p", 'args=["--lr", "0.7"]')

    job = await argo.job(name)
    assert worker(job)[2] == [*COMMAND, "--lr", "0.7"]
    await argo.end(job, exit_code=1)
    assert (await argo.finished(name))["status"]["phase"] == "Failed"
    await argo.no_jobs(name)


async def test_an_event_starts_a_run_by_the_sensor_of_the_page(argo):
    """Argo Events' own trigger creates the workflow; the event's way to it, by a source and a bus, is left out."""
    sensor = argo_page.sensor()
    sensor["metadata"]["namespace"] = NAMESPACE
    event = {"notification": [{"s3": {"object": {"key": 'digits/"train".rec'}}}]}
    process = await asyncio.create_subprocess_exec(
        programs_or_skip(["argo-trigger"])["argo-trigger"],
        env={"KUBECONFIG": str(argo.server.kubeconfig())},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(json.dumps({"sensor": sensor, "data": {"data": event}}).encode())
    assert process.returncode == 0, err.decode()
    made = json.loads(out)["metadata"]
    assert made["labels"]["events.argoproj.io/sensor"] == sensor["metadata"]["name"]
    assert worker(await argo.job(made["name"]))[2] == ["python", "train.py", "--data", 'digits/"train".rec']
