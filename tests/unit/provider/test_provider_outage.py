"""An outage counts from the API server's last answer, wherever a job is waited for: worker, trigger and sensor."""

import asyncio
import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from mxnet_operator.client.job_client import JobRef
from mxnet_operator.kube.errors import ApiError
from mxnet_provider.exceptions import MXNetJobUnreachableError
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.job.metrics import Metrics
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor
from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger
from mxnet_provider.triggers.mxnet_job_state import MXNetJobStateTrigger
from mxnet_provider.watch import JobWatch, run_in_thread

REF = JobRef(name="digits", namespace="default", uid="u")
RUNNING = {
    "metadata": {"name": "digits", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "status": {"conditions": [{"type": "Running", "status": "True"}]},
}
DONE = {
    **RUNNING,
    "status": {"conditions": [{"type": "Succeeded", "status": "True", "reason": "JobSucceeded", "message": "done"}]},
}
ANSWER, AWAY, MISTAKE, END = "answer", "away", "mistake", "end"
LOOKS: dict[str, tuple[list[tuple[float, str]], bool]] = {
    # (seconds that pass before the look, what comes of it) ..., whether it is borne
    "as long as may be": ([(0, ANSWER), (600, AWAY), (0, END)], True),
    "longer": ([(0, ANSWER), (601, AWAY), (0, END)], False),
    "long, an answer, and long again": ([(0, ANSWER), (599, AWAY), (0, ANSWER), (599, AWAY), (0, END)], True),
    "a blip of a job that is an hour old": ([(1800, ANSWER), (1800, ANSWER), (1, AWAY), (0, END)], True),
    "in pieces": ([(0, ANSWER), (300, AWAY), (300, AWAY), (1, AWAY), (0, END)], False),
    "from the start": ([(300, AWAY), (301, AWAY), (0, END)], False),
}
each_outage = pytest.mark.parametrize(("looks", "borne"), LOOKS.values(), ids=LOOKS)


class Server:
    """An API server that answers as it is told, and the clock by which it does."""

    def __init__(self, looks: list[tuple[float, str]]) -> None:
        self.now = 0.0
        self._looks = iter(looks)
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    def look(self) -> dict[str, Any]:
        seconds, what = next(self._looks)
        self.now += seconds
        if what == AWAY:
            raise ApiError(503, "ServiceUnavailable", "away")
        if what == MISTAKE:
            raise LookupError(what)
        return DONE if what == END else RUNNING

    async def get_job(self, _ref: JobRef) -> dict[str, Any]:
        return self.look()

    async def replica_pods(self, _ref: JobRef) -> list[dict[str, Any]]:
        return []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def server(looks: list[tuple[float, str]], monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server(looks)
    monkeypatch.setattr("mxnet_operator.client.outage.time", SimpleNamespace(monotonic=made.clock))
    patched = SimpleNamespace(**{**vars(asyncio), "sleep": made.sleep})
    for module in ("mxnet_operator.client.outage", "mxnet_provider.watch", "mxnet_provider.triggers.mxnet_job_state"):
        monkeypatch.setattr(f"{module}.asyncio", patched)
    return made


def wait_in_a_worker(server: Server, **options: float) -> Any:
    log: Any = SimpleNamespace(info=print, warning=print)
    trigger = MXNetJobTrigger(name="digits", namespace="default", uid="u", get_logs=False, **options)  # type: ignore[arg-type]
    return run_in_thread(trigger.watch(server, log, None, in_worker=True))  # type: ignore[arg-type]


def wait_in_a_trigger(server: Server, **options: float) -> Any:
    trigger = MXNetJobTrigger(name="digits", namespace="default", uid="u", get_logs=False, **options)  # type: ignore[arg-type]
    return asyncio.run(trigger.watch(server, trigger.log, None))  # type: ignore[arg-type]


def wait_in_a_deferred_sensor(server: Server, **options: float) -> Any:
    states = ["Succeeded"]
    trigger = MXNetJobStateTrigger(name="digits", namespace="default", target_states=states, **options)  # type: ignore[arg-type]
    return asyncio.run(trigger.watch(server, trigger.log))  # type: ignore[arg-type]


def wait_in_a_sensor(server: Server, *, poll_interval: float = 10, **options: float) -> Any:
    hook = MXNetJobHook()
    hook.job_client = lambda: contextlib.nullcontext(server)  # type: ignore[method-assign, assignment, return-value]
    sensor = MXNetJobSensor(task_id="s", job_name="digits", namespace="default", poke_interval=poll_interval)
    sensor.__dict__["hook"] = hook
    return sensor._wait(sensor._trigger(options.get("api_outage_tolerance", 600.0)))


@each_outage
def test_a_worker_bears_an_outage_as_long_as_it_may_last(server: Server, borne: bool) -> None:
    if borne:
        found = wait_in_a_worker(server, poll_interval=1, api_outage_tolerance=600)
        assert found.status == "succeeded"
    else:
        with pytest.raises(MXNetJobUnreachableError, match="away for 601 s"):
            wait_in_a_worker(server, poll_interval=1, api_outage_tolerance=600)


@pytest.mark.parametrize(
    ("looks", "borne"), [([(0, AWAY), (119, AWAY), (0, END)], True), ([(0, AWAY), (121, AWAY), (0, END)], False)]
)
def test_a_call_of_the_hook_rides_out_two_minutes(server: Server, borne: bool) -> None:
    hook = MXNetJobHook()
    hook.job_client = lambda: contextlib.nullcontext(server)  # type: ignore[method-assign, assignment, return-value]
    with contextlib.nullcontext() if borne else pytest.raises(ApiError, match="away"):
        assert hook.get_job(REF) == DONE


@each_outage
def test_a_trigger_bears_an_outage_as_long_as_it_may_last(server: Server, borne: bool) -> None:
    event = wait_in_a_trigger(server, api_outage_tolerance=600)
    assert event.status == ("succeeded" if borne else "error")


@each_outage
@pytest.mark.parametrize("wait", [wait_in_a_sensor, wait_in_a_deferred_sensor])
def test_a_sensor_bears_an_outage_as_long_as_it_may_last(server: Server, wait: Any, borne: bool) -> None:
    decision = wait(server, api_outage_tolerance=600)
    assert (decision.status == "error") is not borne


WAITS = {
    "worker": wait_in_a_worker,
    "trigger": wait_in_a_trigger,
    "sensor": wait_in_a_sensor,
    "deferred sensor": wait_in_a_deferred_sensor,
}
each_wait = pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)


@each_wait
@pytest.mark.parametrize("looks", [[(0, ANSWER), *[(1, AWAY)] * 6, (0, ANSWER), (1, AWAY), (0, END)]])
def test_a_sick_server_is_asked_less_and_less_often(server: Server, wait: Callable[..., Any]) -> None:
    wait(server, poll_interval=10)
    wanted = [10, 20, 40, 60, 60, 60, 60, 10, 20]  # give or take a fifth
    assert [0.8 * each <= pause <= 1.2 * each for each, pause in zip(wanted, server.pauses, strict=True)] == [True] * 9


@each_wait
@pytest.mark.parametrize("looks", [[(0, ANSWER), (0, MISTAKE), (0, END)]])
def test_a_mistake_is_no_outage(server: Server, wait: Callable[..., Any]) -> None:
    with pytest.raises(LookupError):
        wait(server, poll_interval=10)


@each_wait
@pytest.mark.parametrize("looks", [[*[(60, AWAY)] * 2000, (0, END)]], ids=["a day and a half"])
def test_an_outage_may_be_borne_for_days(server: Server, wait: Callable[..., Any]) -> None:
    wait(server, poll_interval=10, api_outage_tolerance=7 * 24 * 3600.0)
    assert len(server.pauses) == 2000
    assert max(server.pauses) <= 60 * 1.2


@pytest.mark.parametrize("wait", [wait_in_a_trigger])
@pytest.mark.parametrize("looks", [[(0, ANSWER), *[(1, AWAY)] * 6, (0, END)]])
def test_a_short_lease_is_renewed_soon_after_an_outage(server: Server, wait: Callable[..., Any]) -> None:
    wait(server, poll_interval=1, lease=24)
    assert max(server.pauses) <= 4 * 1.2


@each_wait
@pytest.mark.parametrize("looks", [[(0, ANSWER), (1, AWAY), (0, END)]])
def test_a_poll_interval_above_a_minute_is_kept_in_an_outage(server: Server, wait: Callable[..., Any]) -> None:
    wait(server, poll_interval=300)
    assert min(server.pauses) >= 300 * 0.8


class Logs(contextlib.AbstractAsyncContextManager["Logs", None]):
    """The logs of a job without pods; what is under way of them comes when they are drained."""

    complete: frozenset[str] = frozenset()
    is_drained = False

    async def __aexit__(self, *_: object) -> None: ...

    async def poll(self, _job: object) -> None: ...

    async def drain(self, pods: list[object]) -> None:
        self.is_drained = pods == []

    def positions(self) -> dict[str, list[object]]:
        return {}


@pytest.mark.parametrize("looks", [[(0, END)]])
async def test_the_logs_of_a_job_whose_end_deleted_its_pods_are_drained(server: Server) -> None:
    logs, log = Logs(), SimpleNamespace(info=print, warning=print)
    trigger = MXNetJobTrigger(name="digits", namespace="default", uid="u")
    event = await JobWatch(server, trigger, logs, log, Metrics({}, print), None, lambda _job: None).run()  # type: ignore[arg-type]
    assert (event.status, logs.is_drained) == ("succeeded", True)
