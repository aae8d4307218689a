"""The client against the local API server: what it creates, finds, refuses, and sits out."""

import asyncio
import gc
import queue
import sys
import threading
from contextlib import asynccontextmanager

import pytest
from apiserver_fixtures import running_server
from builders import make_mxjob
from faulty_proxy import Fault, FaultyProxy
from long_results import long_result
from waiting import MOMENT, until

from mxnet_operator.client import (
    AsyncMXJobClient,
    InvalidJobError,
    JobExistsError,
    JobFailedError,
    JobNotFoundError,
    LogIncompleteError,
    MXJobClient,
    ResultLostError,
)
from mxnet_operator.client.pod_log import LogFollower
from mxnet_operator.description import MXJobDescription
from mxnet_operator.kube.errors import ApiError, CredentialsError

JOBS = "/apis/kubeflow.org/v1/namespaces/default/mxjobs"
RUNS = make_mxjob("j").worker().manifest()
DESCRIPTION = MXJobDescription(image="a:1", command=["python", "train.py"], workers=2)


class Log:
    """The same lines to all that ask."""

    def __init__(self, lines):
        self.lines = lines

    async def open(self, pod_uid, request):
        for line in self.lines:
            yield line + b"\n"


@asynccontextmanager
async def server_and_client(folder):
    async with running_server(folder) as server, AsyncMXJobClient(kubeconfig=server.kubeconfig) as client:
        yield server.api, client


async def end(api, name, condition, **status):
    said = {"type": condition, "status": "True", "reason": f"MXJob{condition}", "message": f"it {condition}"}
    body = {"status": {"conditions": [said], "state": condition, **status}}
    (await api.merge(f"{JOBS}/{name}/status", body)).ok()


async def jobs(api):
    return (await api.get(JOBS)).ok()["items"]


async def test_a_job_without_a_name_gets_one_that_no_other_has(tmp_path):
    async with server_and_client(tmp_path) as (api, client):
        first, second = await client.submit(DESCRIPTION), await client.submit(DESCRIPTION)
        assert {first.name, second.name} == {job["metadata"]["name"] for job in await jobs(api)}
        assert first.name.startswith("train-")
        assert first.namespace == "default"


async def test_a_name_that_is_taken_is_told_and_its_job_left_alone(tmp_path):
    named = MXJobDescription(name="mine", image="a:1")
    async with server_and_client(tmp_path) as (api, client):
        kept = await client.submit(named)
        with pytest.raises(JobExistsError, match="MXJob default/mine already exists"):
            await client.submit(named)
        assert [job["metadata"]["uid"] for job in await jobs(api)] == [kept.uid]


async def test_a_manifest_as_the_server_printed_it_is_submitted_anew(tmp_path):
    async with server_and_client(tmp_path) as (api, client):
        first = await client.submit(DESCRIPTION)
        await end(api, first.name, "Succeeded")
        printed = (await api.get(f"{JOBS}/{first.name}")).ok()
        await client.delete(first)
        again = await client.submit(manifest=printed)
        (job,) = await jobs(api)
        assert (job["metadata"]["uid"], "status" in job) == (again.uid, False)
        assert again.uid != first.uid


@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.REQUEST_LOST])
async def test_a_creation_whose_reply_is_lost_makes_one_job(tmp_path, fault):
    async with running_server(tmp_path) as server, FaultyProxy(server.api, tmp_path).served() as proxy:
        proxy.fault = fault
        async with AsyncMXJobClient(kubeconfig=proxy.kubeconfig, namespace="default") as client:
            submitted = await client.submit(DESCRIPTION)
        assert proxy.met
        assert [job["metadata"]["uid"] for job in await jobs(server.api)] == [submitted.uid]


async def test_the_end_of_a_job_is_waited_for_with_its_result(tmp_path):
    async with server_and_client(tmp_path) as (api, client):
        job = await client.submit(DESCRIPTION)
        waiting = asyncio.create_task(client.wait(job))
        times = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:30Z"}
        await end(api, job.name, "Succeeded", result='{"accuracy": 0.9}', **times)
        status = await waiting
        assert (status.succeeded, status.duration_s, status.result) == (True, 90.0, {"accuracy": 0.9})
        assert await client.result(job.name) == {"accuracy": 0.9}


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_result_that_is_too_long_for_the_status_is_read_from_the_log(tmp_path, is_there):
    result = {"losses": list(range(3000))}
    message, lines = long_result(result, [b"Epoch[0] Validation-accuracy=0.5"])
    log = Log(lines if is_there else lines[:-1])
    async with (
        running_server(tmp_path, log_source=log) as server,
        AsyncMXJobClient(kubeconfig=server.kubeconfig) as client,
    ):
        job = await client.submit(DESCRIPTION)
        container = {"name": "mxnet", "image": "i"}
        pod = {"metadata": {"name": f"{job.name}-worker-0"}, "spec": {"nodeName": "n", "containers": [container]}}
        (await server.api.post("/api/v1/namespaces/default/pods", pod)).ok()
        await end(server.api, job.name, "Succeeded", result=message)
        status = await client.wait(job)
        if is_there:
            assert (status.result, await client.result(job), status.lost_result) == (result, result, "")
        else:
            assert (status.result, "gone or incomplete" in status.lost_result) == (None, True)
            with pytest.raises(ResultLostError, match="and the log that has them is gone"):
                await client.result(job)


async def test_a_job_that_fails_raises_its_own_words_unless_told_otherwise(tmp_path):
    async with server_and_client(tmp_path) as (api, client):
        job = await client.submit(DESCRIPTION)
        await end(api, job.name, "Failed")
        with pytest.raises(JobFailedError, match=rf"^MXJob default/{job.name} failed: it Failed$") as failure:
            await client.wait(job)
        assert failure.value.status == await client.wait(job, check=False)


async def test_waiting_in_vain_leaves_the_job(tmp_path):
    async with server_and_client(tmp_path) as (_, client):
        job = await client.submit(DESCRIPTION)
        with pytest.raises(TimeoutError):
            await client.wait(job, timeout=0.01)
        assert (await client.get(job)).uid == job.uid


async def test_a_job_that_is_deleted_meanwhile_is_told(tmp_path):
    async with server_and_client(tmp_path) as (api, client):
        job = await client.submit(DESCRIPTION)
        waiting = asyncio.create_task(client.wait(job))
        (await api.delete(f"{JOBS}/{job.name}")).ok()
        with pytest.raises(JobNotFoundError):
            await waiting


async def test_another_job_of_the_name_is_not_taken_for_the_first(tmp_path):
    named = MXJobDescription(name="mine", image="a:1")
    async with server_and_client(tmp_path) as (_, client):
        first = await client.submit(named)
        assert await client.delete(first)
        second = await client.submit(named)
        with pytest.raises(JobNotFoundError, match="another has its name"):
            await client.get(first)
        assert not await client.delete(first)
        assert (await client.get("mine")).uid == second.uid


async def test_a_job_that_is_not_there_is_said_so(tmp_path):
    async with server_and_client(tmp_path) as (_, client):
        with pytest.raises(JobNotFoundError, match=r"^there is no MXJob default/nothing$"):
            await client.wait("nothing")
        assert not await client.delete("nothing")


async def test_a_manifest_is_submitted_as_text_mapping_file_and_with_what_is_merged_over_it(tmp_path):
    text = """
        apiVersion: kubeflow.org/v1
        kind: MXJob
        metadata: {generateName: digits-}
        spec: {jobMode: MXTrain, mxReplicaSpecs: {Worker: {template: {spec: {containers: [{name: mxnet, image: a}]}}}}}
    """
    file = tmp_path / "job.yaml"
    file.write_text(text)
    async with server_and_client(tmp_path) as (api, client):
        for manifest in (text, file):
            job = await client.submit(MXJobDescription(env={"A": "b"}), manifest=manifest)
            assert job.name.startswith("digits-")
        for stored in await jobs(api):
            container = stored["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
            assert container["env"] == [{"name": "A", "value": "b"}]


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("a: [", "the manifest can't be read"),
        ("just words", "must be one MXJob, is a str"),
        (
            {"kind": "MXJob", "apiVersion": "kubeflow.org/v1", "spec": {"mxReplicaSpecs": {}}},
            "spec.jobMode: Required value",
        ),
        ({"apiVersion": "kubeflow.org/v1beta1", "kind": "MXJob", "spec": {"colour": 1}}, "spec.mxReplicaSpecs"),
        ({"apiVersion": "batch/v1", "kind": "Job"}, "Unsupported value"),
        (
            {**RUNS, "metadata": {"name": "j", "labels": {"kueue.x-k8s.io/max-exec-time-seconds": "24h"}}},
            "max-exec-time-seconds must be a whole number of seconds",
        ),
    ],
)
async def test_what_can_not_run_is_refused_before_anything_is_sent(manifest, words):
    with pytest.raises(InvalidJobError, match=words):
        AsyncMXJobClient().manifest(manifest=manifest)


def test_a_field_of_another_format_is_no_unknown_field():
    made = AsyncMXJobClient().manifest(DESCRIPTION)
    mixed = {**made, "spec": {**made["spec"], "runPolicy": {}, "cleanPodPolicy": "All"}}
    with pytest.raises(
        InvalidJobError,
        match=r"another format than runPolicy: cleanPodPolicy \(write ",
    ):
        AsyncMXJobClient().manifest(manifest=mixed, allow_unknown_fields=True)


async def test_a_replica_that_is_not_there_is_named_with_those_that_are(tmp_path):
    async with server_and_client(tmp_path) as (_, client):
        job = await client.submit(MXJobDescription(image="a:1"))
        with pytest.raises(ValueError, match=r"replica: the job has no 'wroker-0': it has worker-0"):
            await anext(client.logs(job, replica="wroker-0"))


async def test_a_log_whose_end_does_not_come_is_no_whole_log(tmp_path, monkeypatch):
    async def in_vain(_follower):
        return False

    monkeypatch.setattr(LogFollower, "finish", in_vain)
    async with server_and_client(tmp_path) as (api, client):
        job = await client.submit(DESCRIPTION)
        await end(api, job.name, "Succeeded")
        with pytest.raises(LogIncompleteError, match=rf"worker-0 of MXJob default/{job.name} was not received"):
            assert [line async for line in client.logs(job)] == []


async def test_what_the_server_refuses_comes_in_its_own_words(tmp_path):
    async with server_and_client(tmp_path) as (_, client):
        with pytest.raises(ApiError, match='namespaces "nowhere" not found'):
            await client.submit(MXJobDescription(image="a:1", namespace="nowhere"))


async def test_the_synchronous_client_works_beside_a_running_loop(tmp_path):
    """As in a notebook: its calls block this thread, and not a loop that is there."""
    async with running_server(tmp_path) as server:
        with await asyncio.to_thread(MXJobClient, kubeconfig=server.kubeconfig) as client:
            job = await asyncio.to_thread(client.submit, DESCRIPTION)
            waiting = asyncio.create_task(asyncio.to_thread(client.result, job))
            await end(server.api, job.name, "Succeeded", result="7")
            assert await waiting == 7
            assert await asyncio.to_thread(client.delete, job)
    with pytest.raises(RuntimeError, match="the client is closed"):
        client.get(job)


async def test_ctrl_c_while_a_log_is_followed_is_that_and_nothing_else(tmp_path, monkeypatch):
    """It comes while the program waits for the next line, of which there is none."""
    waits = asyncio.Event()

    async def quiet(*_arguments, **_options):
        yield "one"
        try:
            waits.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # as the connection that is closed takes its time

    def follow(client):
        monkeypatch.setattr(client._async, "logs", quiet)
        loop_waits = asyncio.run_coroutine_threadsafe
        for line in client.logs("digits"):
            assert line == "one"

            def interrupted(work, loop):
                running = loop_waits(work, loop)
                monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", loop_waits)
                loop_waits(waits.wait(), loop).result()
                monkeypatch.setattr(running, "result", ctrl_c)
                return running

            monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)

    def ctrl_c(*_):
        raise KeyboardInterrupt

    async with running_server(tmp_path) as server:
        with await asyncio.to_thread(MXJobClient, kubeconfig=server.kubeconfig) as client:
            try:
                await asyncio.to_thread(with_its_interruption, follow, client)
            except InterruptedInAThreadError as interrupted:
                assert isinstance(interrupted.__cause__, KeyboardInterrupt)
            else:
                pytest.fail("nothing was interrupted")


@pytest.mark.parametrize(
    "call",
    [MXJobClient.wait, MXJobClient.result, lambda client, job: list(client.logs(job))],
    ids=["wait", "result", "logs"],
)
async def test_closing_the_client_ends_the_calls_that_wait_in_other_threads(tmp_path, call):
    async with running_server(tmp_path) as server:
        client = await asyncio.to_thread(MXJobClient, kubeconfig=server.kubeconfig)
        job = await asyncio.to_thread(client.submit, DESCRIPTION)
        ends = queue.SimpleQueue()

        def waits():
            try:
                ends.put(call(client, job))
            except Exception as error:
                ends.put((type(error), str(error)))

        for _ in range(3):
            threading.Thread(target=waits, daemon=True).start()
        await until(lambda: len(asyncio.all_tasks(client._loop)) >= 3)
        await asyncio.gather(*(asyncio.to_thread(client.close) for _ in range(2)))
        for _ in range(3):
            assert await asyncio.to_thread(ends.get, timeout=MOMENT) == (RuntimeError, "the client is closed")


async def test_a_log_that_is_read_no_further_says_nothing_after_the_client_is_closed(tmp_path, monkeypatch, recwarn):
    closed, unraisable = [], []
    gc.collect()  # what earlier tests left
    recwarn.clear()
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    async def endless(*_arguments, **_options):
        try:
            while True:
                yield "one"
        finally:
            closed.append("the log")

    def begin():
        with MXJobClient(kubeconfig=server.kubeconfig) as client:
            monkeypatch.setattr(client._async, "logs", endless)
            lines = client.logs("digits")
            assert next(lines) == "one"
        assert closed == ["the log"]
        return lines

    async with running_server(tmp_path) as server:
        lines = await asyncio.to_thread(begin)
        with pytest.raises(RuntimeError, match="the client is closed"):
            next(lines)
        closed.clear()
        lines = await asyncio.to_thread(begin)
        del lines
        gc.collect()
    assert (unraisable, list(recwarn)) == ([], [])


class InterruptedInAThreadError(Exception):
    """A KeyboardInterrupt that comes out of a thread."""


def with_its_interruption(call, *arguments):
    try:
        call(*arguments)
    except KeyboardInterrupt as error:
        raise InterruptedInAThreadError from error


def test_credentials_that_are_not_there_are_told_when_the_client_is_made(tmp_path):
    with pytest.raises(CredentialsError, match="no kubeconfig"):
        MXJobClient(kubeconfig=tmp_path / "nothing")
