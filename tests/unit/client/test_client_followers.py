"""Everyone who follows a job, through everything that happens to an API server: no line lost, none twice."""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
from followed_server import JOB_UID, Fault, FollowedServer
from kubeconfigs import write_kubeconfig
from kubelet_fixtures import ThisInterpreterAsImages
from moved_time import MovedLoop, run_in_moved_time
from scripted_api import scripted_api

from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.cli.output import progress
from mxnet_operator.cli.running.cluster_files import copy_from_cluster
from mxnet_operator.cli.running.run_job import Options, run_job
from mxnet_operator.cli.running.run_outputs import Record
from mxnet_operator.cli.server.connection import Target
from mxnet_operator.cli.verbs import logs, wait
from mxnet_operator.client import AsyncMXJobClient, JobNotFoundError, MXJobClient
from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.client.jobs import in_v1_words
from mxnet_operator.dashboard.job_feed import JobFeed
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.errors import ApiUnavailable
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.resources import Resource
from mxnet_operator.local.kubelet.kubelet import Kubelet
from mxnet_operator.local.waiting import Timing
from mxnet_provider.exceptions import MXNetJobDeletedError
from mxnet_provider.hooks.job_client import AsyncJobClient
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor
from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger
from mxnet_provider.triggers.mxnet_job_state import MXNetJobStateTrigger

MANIFEST: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MXJob",
    "metadata": {"name": "digits", "labels": {"run": "1"}},
    "spec": {
        "jobMode": "MXTrain",
        "mxReplicaSpecs": {
            "Worker": {"replicas": 1, "template": {"spec": {"containers": [{"name": "mxnet", "image": "a:1"}]}}}
        },
    },
}
T = TypeVar("T")

HTML = "<html>upstream connect error</html>"
FAULTS = {
    "reset after 75 s": Fault(at=75, seconds=3, reset=True, away=True),
    "reset after 400 s": Fault(at=400, seconds=3, reset=True, away=True),
    "half open for 30 s": Fault(at=75, seconds=30, frozen=True),
    "half open for 10 min": Fault(at=75, seconds=600, frozen=True),
    "answers 20 s late": Fault(at=75, seconds=60, reset=True, late=20),
    "another authority": Fault(at=75, reset=True, authority=True),
    "401 with a new token": Fault(at=75, reset=True, token="second"),
    "410": Fault(at=75, expired=True),
    "429 with Retry-After": Fault(at=75, seconds=90, reset=True, answer=(429, {"Retry-After": "5"}, "{}")),
    "503 with HTML": Fault(at=75, seconds=40, reset=True, answer=(503, {}, HTML)),
    "cleanPodPolicy All": Fault(at=75, cleaned=True),
    "a restart with another state": Fault(at=75, seconds=3, reset=True, away=True, empty=True),
}
"""What happens to the server; more than a minute of 503 is the end of `mxjob`, whose tolerance it is."""

OUTPUT: ContextVar[list[str]] = ContextVar("OUTPUT")
"""What a command has written to stdout."""


def write_log(line: str, *_: object, **__: object) -> None:
    OUTPUT.get().append(line.rstrip("\n"))


def manifest_for(fault: Fault) -> dict[str, Any]:
    policy = {"runPolicy": {"cleanPodPolicy": "All"}} if fault.cleaned else {}
    return {**MANIFEST, "spec": {**MANIFEST["spec"], **policy}}


async def run(server: FollowedServer, **options: Any) -> str:
    record = Record()
    code = await run_job(manifest_for(server.fault), Target(str(server.kubeconfig)), Options(**options), record)
    gone = "is gone: the API server came back without it"
    return "Succeeded" if code == 0 else "gone" if gone in record.message else f"{code}: {record.message}"


async def adopt(server: FollowedServer) -> str:
    return await run(server, adopt="run")


async def wait_verb(server: FollowedServer) -> str:
    target = Target(str(server.kubeconfig))
    code = await inspect.unwrap(wait.wait)(target, name="digits", awaited="Succeeded", timeout=None)
    return {0: "Succeeded", 1: "gone"}.get(code, str(code))


async def logs_verb(server: FollowedServer) -> str:
    options = {"follow": True, "replica": None, "tail": None, "raw": False}
    code = await inspect.unwrap(logs.logs)(Target(str(server.kubeconfig)), name="digits", **options)
    return "gone" if server.fault.empty and code == 0 else {0: "Succeeded"}.get(code, str(code))


async def dashboard(server: FollowedServer) -> str:
    async with connected(server) as client:
        job = in_v1_words(await client.get("/apis/kubeflow.org/v1/namespaces/default/mxjobs/digits"))
        async with JobFeed(client, job, "worker-0") as feed:
            rounds = 0
            while not feed.is_deleted and rounds < 10:
                await feed.wait(5)
                OUTPUT.get().extend(line.rstrip("\n") for line in feed.lines)
                feed.lines.clear()
                rounds += job_state(feed.job) in TERMINAL  # the rest of the log comes
            return "gone" if feed.is_deleted else job_state(feed.job)


async def client_wait(server: FollowedServer) -> str:
    async with AsyncMXJobClient(kubeconfig=server.kubeconfig) as client:
        try:
            return (await client.wait("digits")).state
        except JobNotFoundError:
            return "gone"


async def client_logs(server: FollowedServer) -> str:
    async with AsyncMXJobClient(kubeconfig=server.kubeconfig) as client:
        try:
            async for line in client.logs("digits"):
                OUTPUT.get().append(line)
        except JobNotFoundError:
            return "gone"
        return "Succeeded"


class TaskLog:
    """A task's log."""

    def __init__(self) -> None:
        self.lines = OUTPUT.get()

    def info(self, text: str, *values: object) -> None:
        line = text % values
        if line.startswith("[worker-0] "):
            self.lines.append(line.removeprefix("[worker-0] "))

    warning = error = debug = lambda *_: None


def jobs_of(kubeconfig: Path) -> AsyncJobClient:
    """The job client of the provider, over a kubeconfig."""
    return MXNetJobHook(kubernetes_conn_id=None, config_file=str(kubeconfig)).job_client()


async def airflow(server: FollowedServer, *, follows: bool) -> str:
    log = TaskLog()
    async with jobs_of(server.kubeconfig) as jobs:
        waits = MXNetJobTrigger(name="digits", namespace="default", uid=JOB_UID)
        event = await waits.watch(jobs, log, None, in_worker=follows)  # type: ignore[arg-type]
    return {"succeeded": "Succeeded", "deleted": "gone"}.get(event.status, event.status)


async def task(server: FollowedServer) -> str:
    return await airflow(server, follows=True)


async def trigger(server: FollowedServer) -> str:
    return await airflow(server, follows=False)


async def sensor(server: FollowedServer) -> str:
    waits = MXNetJobStateTrigger(name="digits", namespace="default", target_states=["Succeeded"])
    async with jobs_of(server.kubeconfig) as jobs:
        decision = await waits.watch(jobs, waits.log)  # type: ignore[arg-type]
    return {"reached": "Succeeded", "missing": "gone"}.get(decision.status, decision.status)


async def sensor_in_worker(server: FollowedServer) -> str:
    hook = MXNetJobHook()
    hook.job_client = lambda: jobs_of(server.kubeconfig)  # type: ignore[method-assign]
    waits = MXNetJobSensor(task_id="s", job_name="digits", namespace="default", timeout=3600, deferrable=False)
    waits.__dict__["hook"] = hook
    try:
        await in_thread(partial(waits.execute.__wrapped__, waits, {}))  # type: ignore[attr-defined]
    except MXNetJobDeletedError:
        return "gone"
    return "Succeeded"


async def sync_client(server: FollowedServer) -> str:
    lines = OUTPUT.get()

    def follow() -> str:
        with MXJobClient(kubeconfig=server.kubeconfig) as client:
            try:
                lines.extend(client.logs("digits"))
                return client.wait("digits").state
            except JobNotFoundError:
                return "gone"

    return await in_thread(follow)


async def in_thread(call: Callable[[], T]) -> T:
    """Call something that blocks, beside whose own loop the time of this one moves on."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MovedLoop)
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:
            done.set_exception(error)

    loop.clock.callers += 1
    threading.Thread(target=run, daemon=True).start()
    try:
        return await asyncio.wrap_future(done)
    finally:
        loop.clock.callers -= 1


async def kubelet(server: FollowedServer) -> str:
    """Sees how its pods end, and reports that its node lives."""
    async with connected(server) as client:
        timing = Timing(node_heartbeat=20)
        node = Kubelet(client, server.kubeconfig.parent, ThisInterpreterAsImages(), "127.77", timing=timing)
        running = [asyncio.create_task(each) for each in (node._reflector.run(), node._node.run())]
        try:
            while True:
                await asyncio.sleep(1)
                pods = node._cache.values()
                seen = all(pod["status"]["phase"] == "Succeeded" for pod in pods)
                if (seen and pods) or (server.is_pod_gone and not pods):
                    break
            gaps = [after - before for before, after in pairwise([*server.heartbeats, server.now])]
            assert max(gaps) < server.fault.seconds + 90, gaps
            return "gone" if server.fault.empty else "Succeeded"
        finally:
            for task in running:
                task.cancel()


async def controller(server: FollowedServer) -> str:
    """The reflector of the controller."""
    seen: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def changed(_: object, new: str | None) -> None:
        if (new is None or new in TERMINAL) and not seen.done():
            seen.set_result(new or "gone")

    def project(raw: Any) -> str:
        import msgspec

        return job_state(msgspec.json.decode(raw))

    cache: Indexer[str] = Indexer()
    resource = Resource("kubeflow.org", "v1", "mxjobs")
    async with connected(server) as client:
        running = asyncio.create_task(Reflector(client, resource, cache, project, changed, namespace="default").run())
        try:
            return await seen
        finally:
            running.cancel()


@contextlib.asynccontextmanager
async def connected(server: FollowedServer) -> Any:
    credentials = await asyncio.to_thread(load_credentials, str(server.kubeconfig))
    async with Client(credentials) as client:
        yield client


FOLLOWERS: dict[str, tuple[Callable[[FollowedServer], Awaitable[str]], bool]] = {
    # follower, and whether it shows the log
    "run": (run, True),
    "run --adopt": (adopt, True),
    "wait": (wait_verb, False),
    "logs -f": (logs_verb, True),
    "dashboard": (dashboard, True),
    "client.wait": (client_wait, False),
    "client.logs": (client_logs, True),
    "Airflow task": (task, True),
    "Airflow trigger": (trigger, True),
    "Airflow sensor, deferred": (sensor, False),
    "Airflow sensor": (sensor_in_worker, False),
    "MXJobClient": (sync_client, True),
    "controller": (controller, False),
    "kubelet": (kubelet, False),
}
_LATE = 120.0
"""Seconds after the job's end by which everyone knows of it, whatever happened."""


async def follow(server: FollowedServer, folder: Path) -> dict[str, tuple[str, list[str]]]:
    async def one(name: str, follower: Callable[[FollowedServer], Awaitable[str]]) -> tuple[str, list[str]]:
        lines: list[str] = []
        OUTPUT.set(lines)
        if name != "run":
            await asyncio.sleep(0.5)  # it creates the job
        try:
            async with asyncio.timeout(server.end + _LATE):
                return await follower(server), lines
        except Exception as error:
            return f"{type(error).__name__}: {error}", lines

    async with server.served(folder):
        tasks = {name: asyncio.create_task(one(name, follower)) for name, (follower, _) in FOLLOWERS.items()}
        return {name: await each for name, each in tasks.items()}


@pytest.mark.sampled(
    *("reset after 75 s", "half open for 10 min", "another authority", "410", "cleanPodPolicy All"),
    "a restart with another state",
)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_everyone_sees_each_line_once_and_the_job_s_end(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "write_log", write_log)
    monkeypatch.setattr(logs, "write_log", write_log)
    end = fault.at + 300
    server = FollowedServer(fault, [1, 2, fault.at + 1, fault.at + 2.5, fault.at + 150, end - 1], end)
    found = run_in_moved_time(follow(server, tmp_path), monkeypatch)
    lines = server.text[:2] if fault.empty else server.text
    wanted = {
        name: ("gone" if fault.empty else "Succeeded", lines if logged else [])
        for name, (_, logged) in FOLLOWERS.items()
    }
    assert found == wanted
    unseen = fault.expired or fault.empty or fault.cleaned or fault.authority  # by what counts requests
    assert server.refused or unseen, "nobody met the fault"


COPIES = {
    # fault, seconds after the job's creation at which the copy begins, what comes of it
    "reset": ("reset after 75 s", 70, "ApiUnavailable"),
    "half open": ("half open for 10 min", 70, "ApiUnavailable"),
    "half open before": ("half open for 10 min", 76, "ApiUnavailable"),
    "answers 20 s late": ("answers 20 s late", 76, "copied"),
    "401 with a new token": ("401 with a new token", 76, "copied"),
    "another authority": ("another authority", 76, "copied"),
}


@pytest.mark.parametrize(("name", "begins", "outcome"), COPIES.values(), ids=COPIES)
def test_a_copy_is_whole_or_fails_within_a_minute_and_a_half_and_leaves_nothing(
    name: str, begins: float, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, final = FollowedServer(FAULTS[name], [1], 900), tmp_path / "here" / "model"
    final.parent.mkdir()

    async def copy() -> tuple[str, float]:
        async with server.served(tmp_path), connected(server) as client:
            await server.create(MANIFEST)
            await asyncio.sleep(70)
            job = in_v1_words(await client.get("/apis/kubeflow.org/v1/namespaces/default/mxjobs/digits"))
            pods = await JobClient(client).replica_pods(JobRef.of(job))
            await asyncio.sleep(begins - 70)
            try:
                await copy_from_cluster(client, job, "worker-0", "/work/model", final, pods=pods)
            except ApiUnavailable as error:
                return type(error).__name__, server.now
            return "copied", server.now

    found, at = run_in_moved_time(copy(), monkeypatch)
    assert (found, at < 75 + 90) == (outcome, True)
    assert [each.name for each in final.parent.iterdir()] == (["model"] if outcome == "copied" else [])
    assert outcome != "copied" or final.read_bytes() == server.model


def test_a_wait_ends_at_its_timeout_though_the_server_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def waits() -> int:
        async with scripted_api() as api:
            write_kubeconfig(tmp_path / "kubeconfig", api.url, "token\n")  # as a file of it may end
            target = Target(str(tmp_path / "kubeconfig"))
            code: int = await inspect.unwrap(wait.wait)(target, name="digits", awaited="Succeeded", timeout=5.0)
            assert {headers["Authorization"] for _, _, _, headers, _ in api.asked} == {"Bearer token"}
            return code

    assert run_in_moved_time(waits(), monkeypatch) == 124
