"""MXNetJobTrigger against a real API server behind a gate, where the test plays controller and kubelet."""

import asyncio
import contextlib
import importlib
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import pytest
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from api_gateway import gateway_to, refusal
from builders import make_mxjob
from controller_fixtures import submitted
from provider_fixtures import OperatorWorld, StampedLog, Try, server_in_thread, terminated
from waiting import SECONDS, until

from mxnet_operator.api import names
from mxnet_operator.client.job_client import JobRef
from mxnet_provider.job import event, task_memory
from mxnet_provider.triggers import ending, mxnet_job
from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger

_WATCHED = (
    "open",
    "os.listdir",
    "os.scandir",
    "subprocess.Popen",
    "time.sleep",
    "socket.connect",
    "socket.getaddrinfo",
)
_OURS = "mxnet_provider"
_active: list["list[str]"] = []
_thread: list[int] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if not _active or event not in _WATCHED or threading.get_ident() != _thread[-1]:
        return
    if event == "socket.connect" and isinstance(arguments[0], socket.socket) and arguments[0].gettimeout() == 0:
        return  # asyncio's own, which doesn't wait
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and f"/{_OURS}/" not in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is not None:
        _active[-1].append(f"{event}{arguments[:1]!r} from {frame.f_code.co_filename}:{frame.f_lineno}")


_installed: list[bool] = []


@contextlib.contextmanager
def blocking_calls() -> Iterator[list[str]]:
    """The blocking calls that this thread makes on behalf of the provider while the context lasts."""
    if not _installed:
        sys.addaudithook(_hook)  # there is no way to take it out again
        _installed.append(True)
    found: list[str] = []
    _active.append(found)
    _thread.append(threading.get_ident())
    try:
        yield found
    finally:
        _active.pop()
        _thread.pop()


GOLDEN = Path(__file__).parent / "golden"
LINES = [b"Epoch[0] Validation-accuracy=0.5", b"caf\xe9", b"Epoch[1] Validation-accuracy=0.9"]


@pytest.fixture(scope="module")
def log():
    return StampedLog()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, log):
    with (
        server_in_thread(tmp_path_factory.mktemp("server"), log) as running,
        gateway_to(running.kubeconfig, tmp_path_factory.mktemp("gateway")) as gateway,
    ):
        gateway.server = running
        yield gateway


@pytest.fixture
def world(gateway, log):
    log.__init__(*LINES)
    gateway.down, gateway.handler = False, None
    gateway.rotate("first-token")
    with ThreadPoolExecutor(1) as threads:
        yield OperatorWorld(gateway.server, threads)
    gateway.down, gateway.handler = False, None


class Waiting:
    """A job, and the trigger that waits for it."""

    count = 0

    def __init__(self, world, gateway):
        Waiting.count += 1
        self.world, self.gateway = world, gateway
        self.job = world.hook.create_job(submitted(make_mxjob(f"job-{Waiting.count}").worker(1)))
        self.ref = JobRef.of(self.job)
        self.before = len(gateway.asked)

    def trigger(self, **arguments):
        return MXNetJobTrigger(
            name=self.ref.name,
            namespace="default",
            uid=self.ref.uid,
            **{"config_file": str(self.gateway.kubeconfig), "poll_interval": 0.05, **arguments},
        )

    def asked(self):
        return self.gateway.asked[self.before :]

    def writes(self):
        return [each for each in self.asked() if each.writes]

    async def start(self, **arguments):
        return asyncio.create_task(events_of(self.trigger(**arguments)))

    async def polled(self, times=1):
        """Wait until the trigger has looked so many times."""
        await until(lambda: len(self.asked()) >= times)

    def end(self, state="Succeeded", message="It is over."):
        self.world.write_status(self.job, state, message, completionTime="2026-11-21T12:00:09Z")


async def events_of(trigger):
    return [each.payload async for each in trigger.run()]


async def event_of(task):
    """The one event that a trigger sends."""
    async with asyncio.timeout(SECONDS):
        (payload,) = await task
    return event.read(json.loads(json.dumps(payload)))


@pytest.fixture
def waiting(world, gateway):
    return Waiting(world, gateway)


async def test_a_job_that_succeeds_is_told_with_its_result_and_nothing_is_written(waiting):
    task = await waiting.start()
    await waiting.polled()
    waiting.world.add_pod(waiting.job, "Worker", 0, terminated(0, {"accuracy": 0.9}))
    waiting.end()
    found = await event_of(task)
    assert (found.status, found.uid) == ("succeeded", waiting.ref.uid)
    assert found.summary["result"] == {"accuracy": 0.9}
    assert found.summary["duration_s"] == 9.0
    assert found.metrics == {"Validation-accuracy": [[0, 0.5], [1, 0.9]]}
    assert found.logs_shown == ["worker-0"]
    assert waiting.writes() == []


async def test_a_deadline_ends_the_waiting_and_leaves_the_job_to_the_worker(waiting):
    waiting.world.write_status(waiting.job, "Running")
    found = await event_of(await waiting.start(deadline=time.time() - 1))
    assert found.status == "timeout"
    assert waiting.writes() == []


async def test_credentials_that_stay_refused_are_told(waiting):
    waiting.gateway.tokens = set()
    found = await event_of(await waiting.start())
    assert (found.status, found.message) == ("refused", "Unauthorized")


async def test_a_missing_right_to_read_pods_costs_the_result_and_no_more(waiting):
    async def handler(asked, forward):
        return refusal(403, "Forbidden", "no pods for you") if "/pods" in asked.path else None

    waiting.gateway.handler = handler
    waiting.end()
    found = await event_of(await waiting.start())
    assert (found.status, found.summary["replicas"]) == ("succeeded", [])


def shown(task_log):
    return [line for line in task_log() if line.startswith("[worker-0]")]


@pytest.mark.parametrize(("seconds", "shows"), [(3600, False), (120, True)], ids=["runs again", "a busy triggerer"])
async def test_a_trigger_that_runs_again_repeats_no_line_and_one_that_starts_late_shows_all(
    waiting, task_log, seconds, shows
):
    waiting.world.add_pod(waiting.job, "Worker", 0, terminated(0))
    waiting.end()
    found = await event_of(await waiting.start(deferred_at=time.time() - seconds))
    assert shown(task_log) == [f"[worker-0] {line.decode(errors='replace')}" for line in LINES if shows]
    assert found.metrics == {"Validation-accuracy": [[0, 0.5], [1, 0.9]]}


async def test_another_trigger_goes_on_where_the_first_one_s_reading_ended(waiting, log, task_log):
    waiting.world.add_pod(waiting.job, "Worker", 0, terminated(0))
    waiting.end()
    first = await event_of(await waiting.start())
    log.lines.append(b"more")
    before = len(shown(task_log))
    await event_of(await waiting.start(log_cursors=first.log_cursors))
    assert shown(task_log)[before:] == ["[worker-0] more"]


async def test_the_event_comes_one_look_after_the_deferral_at_the_soonest(waiting, monkeypatch):
    """Else Airflow's scheduler may take the task's resumption for a failure of its executor."""
    waiting.end()
    paused, sleep = [], asyncio.sleep

    async def note(seconds):
        paused.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    await event_of(await waiting.start(poll_interval=7, deferred_at=time.time() + 100))
    assert any(100 < seconds <= 107 for seconds in paused)


async def test_a_trigger_that_is_cancelled_ends_at_once_and_touches_nothing(waiting):
    trigger = waiting.trigger(poll_interval=3600)
    trigger.trigger_id = 1  # as in a triggerer, and not in `airflow dags test`
    task = asyncio.create_task(events_of(trigger))
    await waiting.polled()
    task.cancel("Supervisor closed")
    with pytest.raises(asyncio.CancelledError):
        await task
    await trigger.cleanup()
    assert waiting.writes() == []


async def test_the_end_of_a_task_deletes_the_job_with_this_uid(waiting):
    await waiting.trigger().on_kill()
    (asked,) = waiting.writes()
    assert (asked.method, asked.path) == (
        "DELETE",
        f"/apis/kubeflow.org/v1/namespaces/default/mxjobs/{waiting.ref.name}",
    )
    assert asked.body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {
            "uid": waiting.ref.uid,
            "resourceVersion": waiting.job["metadata"]["resourceVersion"],
        },
        "propagationPolicy": "Foreground",
    }


async def test_the_end_of_a_task_may_keep_or_suspend_the_job(waiting):
    await waiting.trigger(on_kill_action="keep").on_kill()
    assert waiting.asked() == []
    await waiting.trigger(on_kill_action="suspend").on_kill()
    job = waiting.world.hook.get_job(waiting.ref)
    assert job["spec"]["runPolicy"]["suspend"] is True
    assert job["metadata"]["annotations"][names.SUSPENDED_BY_AIRFLOW_ANNOTATION] == "true"


async def test_the_end_of_a_task_is_tried_again_while_the_api_server_is_away(waiting):
    waiting.gateway.down = True
    task = asyncio.create_task(waiting.trigger().on_kill())
    await asyncio.sleep(0.1)
    waiting.gateway.down = False
    await task
    assert [asked.method for asked in waiting.writes()] == ["DELETE"]


async def test_the_end_of_a_task_is_seen_through_although_the_triggerer_cancels_it_again(waiting):
    """With each of its rounds, one a second, as long as the API server keeps us waiting."""
    asked, answered = [], threading.Event()

    async def handler(request, forward):
        asked.append(request)
        await asyncio.to_thread(answered.wait, SECONDS)

    waiting.gateway.handler = handler
    ending = asyncio.create_task(asyncio.wait_for(waiting.trigger().on_kill(), SECONDS))
    await until(lambda: asked)
    for _ in range(3):
        ending.cancel("user-action")
        for _ in range(10):
            await asyncio.sleep(0)
    answered.set()
    with contextlib.suppress(asyncio.CancelledError):
        await ending
    await until(lambda: [each.method for each in waiting.writes()] == ["DELETE"])


TRY_1, TRY_2 = "1:0192-1", "2:0192-2"


def airflow_says(monkeypatch, answer):
    """What Airflow answers when a trigger asks for its task's state."""

    def states(**asked):
        return answer() if callable(answer) else {asked["run_ids"][0]: answer}

    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", states)


def held(waiting, token):
    """Have this token stand in the job."""
    metadata = waiting.world.hook.get_job(waiting.ref)["metadata"]
    patch = {"resourceVersion": metadata["resourceVersion"], "annotations": {names.HOLDER_ANNOTATION: token}}
    assert waiting.world.hook.patch_job(waiting.ref, {"metadata": patch})


def in_triggerer(waiting, **arguments):
    trigger = waiting.trigger(**{"holder": TRY_1, **arguments})
    trigger.task_instance, trigger.trigger_id = Try(), 1
    return trigger


@pytest.mark.parametrize(
    "case",
    [
        ("failed", TRY_1, True),
        ("success", TRY_1, True),
        ("failed", f"{TRY_1}:elsewhere", True),
        ("failed", TRY_2, False),
        ("deferred", TRY_1, False),
        ("deferred", f"{TRY_1}:elsewhere", False),
        (None, TRY_1, True),
        ("scheduled", TRY_1, True),
        ("running", f"{TRY_1}:elsewhere", False),
        ("running", TRY_2, False),
    ],
)
async def test_a_cancelled_trigger_ends_the_job_only_of_a_task_that_a_user_ended_and_that_nobody_else_holds(
    waiting, monkeypatch, task_log, case
):
    state, standing, ends = case
    airflow_says(monkeypatch, {"train": state})
    held(waiting, standing)
    await in_triggerer(waiting).on_kill()
    assert [each.method for each in waiting.writes()] == (["DELETE"] if ends else [])
    assert any("is left alone, though this trigger was cancelled" in line for line in task_log()) is not ends


@pytest.mark.parametrize(("state", "ends"), [("failed", True), ("deferred", False)])
async def test_where_airflow_calls_no_on_kill_a_trigger_that_is_cancelled_ends_the_job_of_a_task_that_is_over(
    waiting, monkeypatch, state, ends
):
    monkeypatch.setattr(mxnet_job, "_IS_TOLD_OF_KILLS", False)
    airflow_says(monkeypatch, {"train": state})
    trigger = in_triggerer(waiting)
    await trigger.cleanup()
    assert waiting.writes() == []
    watching = asyncio.create_task(anext(trigger.run()))
    await until(waiting.asked)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    await trigger.cleanup()
    assert ("DELETE" in [each.method for each in waiting.writes()]) is ends


async def test_the_job_of_a_run_that_was_deleted_ends(waiting, monkeypatch):
    airflow_says(monkeypatch, {})
    await in_triggerer(waiting).on_kill()
    assert [each.method for each in waiting.writes()] == ["DELETE"]


@pytest.mark.parametrize("how", ["hangs", "fails"])
async def test_where_airflow_does_not_say_how_the_task_stands_the_job_is_left_alone(
    waiting, monkeypatch, task_log, how
):
    answered = threading.Event()

    def silent():
        if how == "fails":
            raise RuntimeError("the database is away")
        answered.wait(SECONDS)

    airflow_says(monkeypatch, silent)
    monkeypatch.setattr(ending, "_ASK_SECONDS", 0.2)
    try:
        await in_triggerer(waiting).on_kill()
    finally:
        answered.set()
    assert waiting.asked() == []
    assert any("Airflow does not say how its task stands" in line for line in task_log())


async def test_a_deletion_that_can_t_be_delivered_is_left_to_the_job_s_lease(waiting, monkeypatch, task_log):
    airflow_says(monkeypatch, {"train": "failed"})
    monkeypatch.setattr(ending, "_KILL_SECONDS", 0.2)
    waiting.gateway.down = True
    await in_triggerer(waiting).on_kill()
    [said] = [line for line in task_log() if "could not be ended, and goes on" in line]
    assert "airflow mxnet cleanup-jobs --namespace default --delete" in said
    assert waiting.writes() == []


async def test_a_trigger_takes_the_job_in_hand_and_renews_its_lease(waiting):
    held(waiting, TRY_1)
    task = await waiting.start(holder=TRY_1, lease=1)

    def annotations():
        return waiting.world.hook.get_job(waiting.ref)["metadata"]["annotations"]

    await until(lambda: annotations()[names.HOLDER_ANNOTATION].startswith(f"{TRY_1}:"))
    first = annotations()
    assert first[names.LEASE_DURATION_ANNOTATION] == "1"
    assert first[names.LEASE_ACTION_ANNOTATION] == "delete"
    await until(lambda: annotations()[names.LEASE_RENEW_TIME_ANNOTATION] != first[names.LEASE_RENEW_TIME_ANNOTATION])
    assert annotations()[names.HOLDER_ANNOTATION] == first[names.HOLDER_ANNOTATION]
    waiting.end()
    await event_of(task)


async def test_a_trigger_that_runs_twice_hands_the_job_over_to_the_later_run(waiting, monkeypatch, task_log):
    """A triggerer that stood still comes back: it may neither end the job nor renew its lease."""
    held(waiting, TRY_1)
    first, second = (in_triggerer(waiting, lease=1) for _ in range(2))
    runs = []
    for count, trigger in enumerate((first, second), 1):
        runs.append(asyncio.create_task(events_of(trigger)))
        await until(lambda count=count: len(waiting.writes()) >= count)
    await until(lambda: any("waits for it now" in line for line in task_log()))
    for state in ("deferred", "running", None):
        airflow_says(monkeypatch, {"train": state})
        await first.on_kill()
    assert not any(each.method == "DELETE" for each in waiting.writes())
    await second.on_kill()
    assert any(each.method == "DELETE" for each in waiting.writes())
    await asyncio.gather(*runs)


async def test_a_trigger_that_may_not_patch_says_so_and_goes_on_waiting(waiting, task_log):
    held(waiting, TRY_1)

    async def handler(asked, forward):
        return refusal(403, "Forbidden", "mxjobs: cannot patch") if asked.method == "PATCH" else None

    waiting.gateway.handler = handler
    task = await waiting.start(holder=TRY_1, lease=1)
    await until(lambda: any("could not be renewed" in line and "cannot patch" in line for line in task_log()))
    await waiting.polled(8)
    waiting.end()
    assert (await event_of(task)).status == "succeeded"
    assert len([each for each in waiting.writes() if each.method == "PATCH"]) == 1


@pytest.mark.parametrize("extra", ["kube_config_path", "kube_config"])
async def test_nothing_that_a_trigger_does_blocks_the_loop(waiting, monkeypatch, extra):
    """From the look-up of the connection to the event, for a connection by path and one by content."""
    path = waiting.gateway.kubeconfig
    value = str(path) if extra == "kube_config_path" else path.read_text()
    connection = {"conn_type": "kubernetes", "extra": json.dumps({extra: value})}
    monkeypatch.setenv("AIRFLOW_CONN_GUARDED", json.dumps(connection))
    waiting.world.add_pod(waiting.job, "Worker", 0, terminated(0))
    waiting.end()
    trigger = waiting.trigger(config_file=None, kubernetes_conn_id="guarded")
    with blocking_calls() as warm_up:
        await events_of(trigger)
    with blocking_calls() as found:
        (payload,) = await events_of(waiting.trigger(config_file=None, kubernetes_conn_id="guarded"))
    assert payload["status"] == "succeeded"
    assert found == [], warm_up


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("trigger-*.json")), ids=lambda file: file.stem)
def test_triggers_that_earlier_releases_deferred_to_are_made_again(file):
    path, arguments = json.loads(file.read_text())
    module, _, name = path.rpartition(".")
    trigger = getattr(importlib.import_module(module), name)
    again = trigger(**arguments).serialize()
    assert again == (path, {key: value for key, value in arguments.items() if key in again[1]})
    assert trigger(**again[1]).serialize() == again


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("event-*.json")), ids=lambda file: file.stem)
def test_events_that_triggers_of_earlier_releases_sent_are_read(file):
    found = event.read(json.loads(file.read_text()))
    assert (found.status, found.summary["state"]) == ("succeeded", "Succeeded")


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("state-*.json")), ids=lambda file: file.stem)
def test_state_that_earlier_releases_stored_is_read(file):
    record = task_memory.load(json.loads(file.read_text()))
    assert (record.ref.name, record.generation, record.phase) == ("digits-01234567", 2, "submitted")
