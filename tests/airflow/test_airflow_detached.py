"""A worker that is killed before it has ended its job leaves a process that does: on a real API server."""

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import msgspec
import psutil
import pytest
import structlog.testing
import yaml
from api_gateway import gateway_to
from provider_fixtures import StampedLog, operator_world, server_in_thread
from waiting import SECONDS, eventually, until

from mxnet_operator.api import names
from mxnet_provider.job.job_ref import JobRef
from mxnet_provider.job.kill import is_suspended
from mxnet_provider.operators import detached

SUPPORT = Path(__file__).resolve().parents[1] / "support"
SECRET = "a-secret-that-nobody-may-see"
COMMAND = [sys.executable, "-P", "-m", detached.__name__]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with server_in_thread(tmp_path_factory.mktemp("server"), StampedLog()) as running:
        yield running


@pytest.fixture
def world(running):
    yield from operator_world(running, deferrable=False)


@pytest.fixture
def gateway(running, tmp_path):
    with gateway_to(running.kubeconfig, tmp_path) as gateway:
        gateway.rotate(SECRET)
        yield gateway


@pytest.fixture
def task_log():
    """The messages of the task's log so far."""
    with structlog.testing.capture_logs() as entries:
        yield lambda: [entry["event"] for entry in entries]


def only(found):
    assert len(found) == 1, found
    return found[0]


@contextlib.contextmanager
def worker(world, gateway, log, **arguments):
    """A worker that waits for its job, and the job; its output goes into the file `log`."""
    before = {job["metadata"]["uid"] for job in world.jobs()}
    arguments = json.dumps({"poll_interval": 0.2, **arguments})
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "dying_worker", str(gateway.kubeconfig), arguments],
            env={**os.environ, "PYTHONPATH": str(SUPPORT)},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:

        def waits():
            if process.poll() is not None:
                pytest.fail(f"the worker ended with {process.returncode}")
            job = only([each for each in world.jobs() if each["metadata"]["uid"] not in before])
            looks = sum(asked.path.endswith(job["metadata"]["name"]) for asked in gateway.asked)
            return looks > 2 and job

        yield process, eventually(waits)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)


def the_detached(process):
    """The one process that is to outlive another."""
    return only([each for each in psutil.Process(process.pid).children() if each.cmdline() == COMMAND])


def looked_at(world, job):
    return world.hook.get_job(JobRef.of(job))


@pytest.mark.parametrize(("action", "outage"), [("delete", "hangs"), ("suspend", "is away")])
def test_a_job_that_a_killed_worker_could_not_end_is_ended_when_the_api_is_back(
    world, gateway, tmp_path, action, outage
):
    log = tmp_path / "worker.log"
    with worker(world, gateway, log, on_kill_action=action) as (process, job):
        if outage == "hangs":
            gateway.handler = hang
        else:
            gateway.down = True
        process.terminate()
        eventually(lambda: "goes on asking" in log.read_text())  # before that, it may not have its order yet
        detached = the_detached(process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
        assert detached.is_running()
        assert not is_suspended(looked_at(world, job))
        gateway.handler, gateway.down = None, False
        if action == "delete":
            eventually(lambda: looked_at(world, job) is None)
        else:
            eventually(lambda: is_suspended(looked_at(world, job)))
            world.delete(job)
        psutil.wait_procs([detached], SECONDS)
        assert not detached.is_running()


async def hang(_asked, _forward):
    await asyncio.Event().wait()


def killed(world, **arguments):
    """An operator that waits for its job, and the job."""
    operator = world.operator(**arguments)
    task = world.start(operator)
    job = world.job_of(task)
    eventually(lambda: operator.job_ref is not None and operator.job_ref.uid)
    return operator, job


def test_a_worker_that_ends_its_job_itself_leaves_no_process(world, task_log):
    operator, job = killed(world)
    operator.on_kill()
    assert looked_at(world, job) is None
    pid = only([int(found[1]) for line in task_log() if (found := re.search(r"process (\d+) goes on", line))])
    assert not psutil.pid_exists(pid)


def test_a_worker_that_fails_over_it_and_lives_on_leaves_it_to_the_process(world, monkeypatch):
    operator, job = killed(world)

    def fail(*_args, **_kwargs):
        raise ConnectionError("as the test says")

    monkeypatch.setattr(operator.hook, "end_job", fail)
    with pytest.raises(ConnectionError):
        operator.on_kill()
    eventually(lambda: looked_at(world, job) is None)


@pytest.mark.parametrize(
    ("arguments", "executable"),
    [
        ({"api_outage_tolerance": 0}, sys.executable),
        ({}, "/no/such/python"),
    ],
    ids=["no tolerance", "no interpreter"],
)
def test_without_a_process_the_worker_still_ends_its_job(world, monkeypatch, task_log, arguments, executable):
    operator, job = killed(world, **arguments)
    monkeypatch.setattr(sys, "executable", executable)
    operator.on_kill()
    assert looked_at(world, job) is None
    assert any(line.startswith("No process could be started to end ") for line in task_log()) is (not arguments)
    assert not any("goes on asking" in line for line in task_log())


def order(world, job, **changes):
    values = {
        "ref": JobRef.of(job),
        "action": "delete",
        "propagation_policy": "Background",
        "of_try": "1:a",
        "tolerance": SECONDS,
        "connection": {"extra": {"kube_config_path": world.kubeconfig}},
    }
    return detached.Order(**{**values, **changes})


def stored_job(world, token, state=""):
    """A job in which a token stands."""
    annotations = {names.HOLDER_ANNOTATION: token} if token else {}
    job = world.hook.create_job(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MXJob",
            "metadata": {"name": f"held-{uuid.uuid4().hex[:8]}", "namespace": "default", "annotations": annotations},
            "spec": world.operator().given_manifest()["spec"],
        }
    )
    if state:
        world.write_status(job, state)
    return job


@pytest.mark.parametrize(
    ("token", "state", "ends"),
    [
        ("1:a", "", True),
        ("1:a", "Running", True),
        ("1:a:a-run-of-its-trigger", "Running", True),
        ("1:a", "Succeeded", False),
        ("2:b", "Running", False),
        ("1:ab", "Running", False),
        ("", "Running", False),
    ],
)
def test_only_a_job_in_which_the_dead_try_s_token_stands_is_ended(world, token, state, ends):
    job = stored_job(world, token, state)
    ended = asyncio.run(detached.carry_out(order(world, job)))
    assert ended.done is ends
    assert (looked_at(world, job) is None) is ends
    if not ends:
        world.delete(job)


def test_another_job_of_the_same_name_is_left_alone(world):
    job = stored_job(world, "1:a")
    other = msgspec.structs.replace(JobRef.of(job), uid="another")
    assert not asyncio.run(detached.carry_out(order(world, job, ref=other))).done
    assert looked_at(world, job) is not None
    world.delete(job)


def test_it_gives_up_after_the_tolerance(world, gateway):
    job = stored_job(world, "1:a")
    gateway.down = True
    connection = {"extra": {"kube_config_path": str(gateway.kubeconfig)}}
    assert asyncio.run(detached.carry_out(order(world, job, connection=connection, tolerance=0.01))) is None
    world.delete(job)


def opened(process):
    """What a process has open, by its folder in /proc; while it starts, also the modules that it reads."""
    found = set()
    for each in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has just been closed
            found.add(str(each.readlink()))
    return found


def test_credentials_are_in_no_command_line_environment_or_file(world):
    job = stored_job(world, "1:a")
    config = yaml.safe_load(Path(world.kubeconfig).read_text())
    config["users"][0]["user"]["token"] = f"{SECRET}-of-the-connection"
    process = detached.DetachedProcess(order(world, job, connection={"extra": {"kube_config": config}}))
    try:
        folder = Path("/proc") / str(process.pid)
        with contextlib.suppress(PermissionError):  # only root may look
            assert SECRET.encode() not in (folder / "environ").read_bytes()
            asyncio.run(
                until(lambda: all(p == os.devnull or p.startswith("pipe:") for p in opened(folder)), within=SECONDS)
            )
        assert SECRET.encode() not in (folder / "cmdline").read_bytes()
    finally:
        process.dismiss()
    assert looked_at(world, job) is not None
    world.delete(job)


def test_it_needs_no_airflow():
    """Which takes seconds and a hundred MiB, and there may be one of these processes for each task."""
    code = f"import sys, {detached.__name__}, mxnet_provider.hooks.job_client, mxnet_provider.hooks.kube_configuration"
    subprocess.run([sys.executable, "-P", "-c", f"{code}; assert 'airflow' not in sys.modules"], check=True)
