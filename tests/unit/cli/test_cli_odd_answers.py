"""Answers that no API server gives: every verb of `mxjob` goes on, or ends with a line, never with a traceback."""

import asyncio
import json
import os
from functools import partial

import pytest
from apiserver_fixtures import running_server
from cli_outcomes import outcome
from controller_fixtures import JOBS, PODS, gang
from odd_answers import ODD, OddProxy

from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.running import create_job
from mxnet_operator.client import follow_logs, jobs
from mxnet_operator.kube import transport

SHIFTS = int(os.environ.get("MXJOB_ODD_ANSWERS", "2"))
"""In how many runs the answers are dealt out otherwise; with 41 each verb of each resource meets each answer."""
NOW = "2026-01-01T00:00:00Z"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "digits-worker-0", "labels": {"training.kubeflow.org/job-name": "digits"}},
    "spec": {"containers": [{"name": "mxnet", "image": "i"}]},
}


class Log:
    """Three lines, the same to whoever asks."""

    async def open(self, pod_uid, request):
        for line in (b"one", b"two", b"three"):
            yield (f"{NOW} ".encode() if request.timestamps else b"") + line + b"\n"


@pytest.fixture
def patient(monkeypatch):
    """Nobody waits between two requests, and nobody gives up before the odd answers are over."""
    brief = partial(jobs.RetryBudget, sleep=lambda _: asyncio.sleep(0.01))
    for module in (jobs, create_job, follow_logs):
        monkeypatch.setattr(module, "RetryBudget", brief)
    monkeypatch.setattr(transport, "_pause", lambda error, failures: 0.0)
    monkeypatch.setattr(follow_logs, "_LOOK", 0.05)


async def end_job(api):
    """What a controller does: the job is told to have Succeeded, again and again, for it may come later."""
    done = {"conditions": [{"type": "Succeeded", "status": "True", "reason": "r", "message": "it is done"}]}
    while True:
        await asyncio.sleep(0.3)
        await api.merge(f"{JOBS}/digits/status", {"status": done | {"completionTime": NOW}})


VERBS = {
    "get": ["get"],
    "get one": ["get", "digits", "-o", "json"],
    "describe": ["describe", "digits"],
    "logs": ["logs", "digits"],
    "delete": ["delete", "digits"],
    "wait": ["wait", "digits"],
    "logs -f": ["logs", "-f", "digits"],
    "run": ["run", "-f", "new.json"],
    "run --adopt": ["run", "-f", "new.json", "--adopt", "team"],
}


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("shift", [round(number * len(ODD) / SHIFTS) for number in range(SHIFTS)])
@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_goes_on_or_says_in_a_line_what_is_wrong(tmp_path, monkeypatch, capsys, verb, shift):
    async with (
        running_server(tmp_path, log_source=Log()) as running,
        OddProxy(running.api, tmp_path, shift).served() as proxy,
    ):
        api = running.api
        manifest = gang()
        manifest["metadata"]["labels"] = {"team": "vision"}
        if verb == "run":
            manifest["metadata"]["name"] = "other"
        else:
            job = (await api.post(JOBS, manifest)).ok()
            owner = {"apiVersion": job["apiVersion"], "kind": "MXJob", "name": "digits", "uid": job["metadata"]["uid"]}
            pod = {**POD, "metadata": POD["metadata"] | {"ownerReferences": [owner | {"controller": True}]}}
            (await api.post(PODS, pod)).ok()
            running_since = {"name": "mxnet", "ready": True, "image": "i", "state": {"running": {"startedAt": NOW}}}
            (await api.merge(f"{PODS}/digits-worker-0/status", {"status": {"containerStatuses": [running_since]}})).ok()
        ends = asyncio.create_task(end_job(api) if verb != "run" else asyncio.sleep(0))
        (tmp_path / "new.json").write_text(json.dumps(manifest))
        monkeypatch.chdir(tmp_path)
        code, said = await outcome(monkeypatch, *VERBS[verb], "--kubeconfig", str(proxy.kubeconfig), "-n", "default")
        ends.cancel()
        await asyncio.gather(ends, return_exceptions=True)
    written = capsys.readouterr()
    print(verb, code, said, proxy.given, written)
    assert code in {Exit.OK, Exit.API}
    assert proxy.given
    if code is Exit.API:
        assert "API server" in said
        assert "\n" not in said
        assert len(said) < 2000
