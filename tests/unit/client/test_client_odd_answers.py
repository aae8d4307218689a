"""Answers that no API server gives: every call of the client goes on, or raises an error that it names."""

import asyncio
import os
from functools import partial

import pytest
from apiserver_fixtures import running_server
from controller_fixtures import JOBS, PODS, gang
from odd_answers import ODD, OddProxy
from waiting import MOMENT

from mxnet_operator.client import AsyncMXJobClient, JobExistsError, MXJobClient, async_client, follow_logs, jobs
from mxnet_operator.description import MXJobDescription
from mxnet_operator.kube import transport
from mxnet_operator.kube.errors import ApiError, ApiUnavailable

SHIFTS = int(os.environ.get("MXJOB_ODD_ANSWERS", "2"))
"""In how many runs the answers are dealt out otherwise; with 41 each call meets each answer."""
DEALT = [round(number * len(ODD) / SHIFTS) for number in range(SHIFTS)]
NOW = "2026-01-01T00:00:00Z"
NEW = MXJobDescription(name="other", image="a:1")
TAKEN = MXJobDescription(name="digits", image="a:1")


class Log:
    """Two lines, the same to all that ask."""

    async def open(self, pod_uid, request):
        for line in (b"Epoch[0] Validation-accuracy=0.5", b"two"):
            yield (f"{NOW} ".encode() if request.timestamps else b"") + line + b"\n"


@pytest.fixture
def patient(monkeypatch):
    """Nobody waits between two requests, and nobody gives up before the odd answers are over."""
    brief = partial(jobs.RetryBudget, sleep=lambda _: asyncio.sleep(0.01))
    for module in (jobs, async_client, follow_logs):
        monkeypatch.setattr(module, "RetryBudget", brief)
    monkeypatch.setattr(transport, "_pause", lambda error, failures: 0.0)


async def followed(client, **options):
    return [line async for line in client.logs("digits", **options)]


CALLS = {
    "submit": (lambda client: client.submit(NEW), "other"),
    "get": (lambda client: client.get("digits"), "digits"),
    "wait": (lambda client: client.wait("digits"), "digits"),
    "result": (lambda client: client.result("digits"), {"accuracy": 0.9}),
    "metrics": (lambda client: client.metrics("digits"), None),
    "logs": (partial(followed, follow=True), None),
    "logs so far": (partial(followed, follow=False), None),
    "delete": (lambda client: client.delete("digits", wait=False), True),
}


async def add_a_job_that_succeeded(api):
    """A job that has succeeded, and its pod."""
    job = (await api.post(JOBS, gang())).ok()
    owner = {"apiVersion": job["apiVersion"], "kind": "MXJob", "name": "digits", "uid": job["metadata"]["uid"]}
    metadata = {"name": "digits-worker-0", "labels": {"training.kubeflow.org/job-name": "digits"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | {"ownerReferences": [owner | {"controller": True}]},
        "spec": {"containers": [{"name": "mxnet", "image": "i"}]},
    }
    (await api.post(PODS, pod)).ok()
    ended = {"name": "mxnet", "ready": False, "image": "i", "state": {"terminated": {"exitCode": 0}}}
    (await api.merge(f"{PODS}/digits-worker-0/status", {"status": {"containerStatuses": [ended]}})).ok()
    done = {"conditions": [{"type": "Succeeded", "status": "True", "reason": "r", "message": "it is done"}]}
    (await api.merge(f"{JOBS}/digits/status", {"status": done | {"result": '{"accuracy": 0.9}'}})).ok()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("shift", DEALT)
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_goes_on_or_raises_an_error_of_its_own(tmp_path, call, shift):
    ask, expected = CALLS[call]
    async with (
        running_server(tmp_path, log_source=Log()) as running,
        OddProxy(running.api, tmp_path, shift).served() as proxy,
    ):
        await add_a_job_that_succeeded(running.api)
        async with AsyncMXJobClient(kubeconfig=proxy.kubeconfig, namespace="default") as client:
            try:
                answer = await asyncio.wait_for(ask(client), MOMENT)
            except (ApiError, ApiUnavailable) as error:
                print(call, proxy.given, error)
            else:
                assert expected in (None, answer, getattr(answer, "name", None))
    assert proxy.given


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("shift", DEALT)
async def test_a_taken_name_is_told_whatever_is_answered_before_its_job(tmp_path, shift):
    """The look at the job that has the name is answered oddly, and repeated."""
    async with (
        running_server(tmp_path) as running,
        OddProxy(running.api, tmp_path, shift, times=1).served() as proxy,
    ):
        (await running.api.post(JOBS, gang())).ok()
        proxy.given["POST mxjobs"] = ["passed on"]  # only the look is answered oddly
        async with AsyncMXJobClient(kubeconfig=proxy.kubeconfig, namespace="default") as client:
            with pytest.raises((JobExistsError, ApiError)):
                await asyncio.wait_for(client.submit(TAKEN), MOMENT)
        assert proxy.given["GET mxjobs NAME"]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("shift", DEALT)
async def test_the_synchronous_client_outlasts_each_answer(tmp_path, shift):
    async with (
        running_server(tmp_path, log_source=Log()) as running,
        OddProxy(running.api, tmp_path, shift, times=1).served() as proxy,
    ):
        await add_a_job_that_succeeded(running.api)

        def ask():
            with MXJobClient(kubeconfig=proxy.kubeconfig, namespace="default") as client:
                try:
                    return client.get("digits").state
                except (ApiError, ApiUnavailable):
                    return client.get("digits").state  # a redirection is a refusal, and stays one

        assert await asyncio.to_thread(ask) == "Succeeded"
        assert proxy.given
