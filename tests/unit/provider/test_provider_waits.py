"""Whatever a job waits for is shown in a task's log, and why it had not started where its time is over."""

import asyncio
import contextlib
import itertools
import os
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from waiting_jobs import WORDS, waiting_job

from mxnet_operator.client.job_client import JobRef
from mxnet_operator.readers.waiting import WAITING
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.job.event import completion_of
from mxnet_provider.job.polling import until_next_poll
from mxnet_provider.job.state_log import StateLog
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor
from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger
from mxnet_provider.triggers.mxnet_job_state import MXNetJobStateTrigger

REF = JobRef(name="digits", namespace="default", uid="u")


class Log:
    """What a task's logger was told, with its level."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def info(self, text: str, *values: Any) -> None:
        self.lines.append(("info", text % values))

    def warning(self, text: str, *values: Any) -> None:
        self.lines.append(("warning", text % values))


@pytest.mark.parametrize("condition_type", WAITING)
def test_every_wait_is_logged_once(condition_type: str) -> None:
    log, states = Log(), StateLog(REF)
    for _ in range(3):
        states.report(waiting_job(condition_type), log)  # type: ignore[arg-type]
    warnings = [text for level, text in log.lines if level == "warning"]
    assert len(warnings) == 1
    assert f" waits: {WORDS} {condition_type}" in warnings[0]
    assert REF.title in warnings[0]


@pytest.mark.parametrize("condition_type", sorted(set(WAITING) - {"Suspended", "Restarting"}))
def test_a_start_that_takes_too_long_has_the_reason(condition_type: str) -> None:
    job = waiting_job(condition_type)
    found = completion_of(job, "u", now=1e10, startup_timeout=60)
    assert found is not None
    assert found.status == "startup_timeout"
    assert f"{WORDS} {condition_type}" in found.message


def test_what_a_job_says_of_its_success_is_logged() -> None:
    job = waiting_job("SchedulerStillRunning")
    job["status"]["conditions"].append({"type": "Succeeded", "status": "True", "message": "MXJob digits is done. Why?"})
    log = Log()
    StateLog(REF).report(job, log)  # type: ignore[arg-type]
    assert [level for level, _ in log.lines] == ["info"]
    assert log.lines[0][1].endswith("Succeeded: MXJob digits is done. Why?")


@pytest.mark.parametrize(
    ("policy", "deadline", "status"),
    [(None, 1000.0, None), (None, 879.0, "timeout"), ("AllWorkers", 1000.0, None), ("Scheduler", 1000.0, "timeout")],
    ids=["in time", "long over", "all workers", "its scheduler decides"],
)
def test_a_deadline_waits_for_a_job_whose_success_is_known(policy: str | None, deadline: float, status: str) -> None:
    """All Workers have succeeded, and the controller stops the Scheduler a minute later."""
    job = waiting_job("SchedulerStillRunning")
    job["spec"]["successPolicy"] = policy
    found = completion_of(job, "u", now=1000.0, deadline=deadline)
    assert (None if found is None else found.status) == status


class Timeline:
    """A job that begins to wait at a moment, and the clock of whoever looks at it; nothing sleeps."""

    def __init__(self, condition_type: str, begins: float) -> None:
        self.clock = 0.0
        self.told_at: float | None = None
        self.looks: list[float] = []
        self._before, self._after = waiting_job(condition_type), waiting_job(condition_type)
        self._before["status"]["conditions"].pop()
        self._begins = begins

    def job(self) -> dict[str, Any]:
        self.looks.append(self.clock)
        return self._after if self.clock >= self._begins else self._before

    def pass_(self, seconds: float) -> None:
        self.clock += seconds
        if self.told_at is not None or self.clock > self._begins + 1000:
            raise EndOfTimeError

    def info(self, text: str, *values: Any) -> None:
        pass

    def warning(self, text: str, *values: Any) -> None:
        if WORDS in text % values:
            self.told_at = self.clock


class EndOfTimeError(Exception):
    """The test has seen enough."""


class AsyncHook:
    """As much of a hook as a trigger needs that shows no logs."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    async def get_job(self, _ref: JobRef) -> dict[str, Any]:
        return self._timeline.job()


def by_trigger(timeline: Timeline, poll_interval: float, monkeypatch: pytest.MonkeyPatch) -> None:
    _run_trigger(
        MXNetJobTrigger(
            name="digits",
            namespace="default",
            uid="u",
            poll_interval=poll_interval,
            startup_timeout=None,
            get_logs=False,
        ),
        timeline,
        monkeypatch,
    )


def by_sensor(timeline: Timeline, poll_interval: float, monkeypatch: pytest.MonkeyPatch) -> None:
    _run_trigger(
        MXNetJobStateTrigger(
            name="digits", namespace="default", target_states=["Succeeded"], poll_interval=poll_interval
        ),
        timeline,
        monkeypatch,
    )


def _run_trigger(trigger: Any, timeline: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(seconds: float) -> None:
        timeline.pass_(seconds)

    monkeypatch.setattr(type(trigger), "log", timeline)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    asyncio.run(trigger.watch(AsyncHook(timeline), timeline, *([None] if isinstance(trigger, MXNetJobTrigger) else [])))


@pytest.mark.parametrize("poll_interval", [0.5, 10.0, 3600.0])
@pytest.mark.parametrize("look", [by_trigger, by_sensor])
def test_what_a_job_waits_for_is_logged_within_five_seconds(
    look: Callable[..., None], poll_interval: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = int(os.environ.get("MXJOB_SEED", random.randrange(10**6)))
    print(f"MXJOB_SEED={seed}")
    draw = random.Random(seed)
    for condition_type in WAITING:
        timeline = Timeline(condition_type, begins := draw.uniform(0, 300))
        with monkeypatch.context() as patched, contextlib.suppress(EndOfTimeError):
            look(timeline, poll_interval, patched)
        assert timeline.told_at is not None, condition_type
        assert timeline.told_at - begins <= 5, condition_type
        steps = [after - before for before, after in itertools.pairwise(timeline.looks)]
        assert min(steps, default=poll_interval) >= min(poll_interval, 4.0) * 0.8


@pytest.mark.parametrize(
    ("conditions", "is_calm"),
    [
        ([], False),
        (["Created"], False),
        (["Created", "Running"], True),
        (["Created", "Running", "ServersExited"], False),
        (["Created", "Suspended"], False),
        (["Created", "Restarting"], False),
    ],
)
def test_a_job_that_just_runs_is_looked_at_as_seldom_as_the_user_says(conditions: list[str], is_calm: bool) -> None:
    job = waiting_job("ServersExited")
    job["status"]["conditions"] = [{"type": each, "status": "True", "message": "m"} for each in conditions]
    pauses = [until_next_poll(job, 100.0) for _ in range(100)]
    least, most = (80, 120) if is_calm else (3, 5)
    assert least <= min(pauses) <= max(pauses) <= most
    assert max(until_next_poll(job, 0.1) for _ in range(100)) <= 0.12


def test_a_job_that_is_not_there_is_looked_for_as_seldom_as_the_user_says() -> None:
    assert until_next_poll(None, 100.0) >= 80


def test_a_sensor_in_a_worker_tells_with_each_poke_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    timeline, hook = Timeline("PodsScheduled", begins=1.0), MXNetJobHook()
    sensor = MXNetJobSensor(task_id="sense", job_name="digits", namespace="default", deferrable=False)
    monkeypatch.setattr(hook, "get_job", lambda _ref: timeline.job())
    monkeypatch.setattr(MXNetJobSensor, "hook", hook)
    monkeypatch.setattr(MXNetJobSensor, "log", timeline)
    told = []
    for clock in (0.0, 60.0, 120.0):
        timeline.clock = clock
        assert not sensor.poke({})
        told.append(timeline.told_at)
    assert told == [None, 60.0, 60.0]


@pytest.mark.parametrize("timeout", [90, 90.0, timedelta(seconds=90)])
def test_a_sensor_defers_with_the_type_of_timeout_that_every_airflow_takes(
    monkeypatch: pytest.MonkeyPatch, timeout: float | timedelta
) -> None:
    """That of 2.11 raises where it is no timedelta."""
    sensor = MXNetJobSensor(task_id="s", job_name="digits", namespace="default", deferrable=True, timeout=timeout)
    monkeypatch.setattr(MXNetJobSensor, "_read", lambda _: None)
    with pytest.raises(TaskDeferred) as deferred:
        sensor.execute({})
    assert deferred.value.timeout == timedelta(seconds=90)


def queued(created: str, *conditions: dict[str, Any]) -> dict[str, Any]:
    """A job that has not started."""
    return {"metadata": {"uid": "u", "creationTimestamp": created}, "status": {"conditions": list(conditions)}}


SUSPENDED = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}
RESUMED = {"type": "Suspended", "status": "False", "lastTransitionTime": "2026-01-01T00:20:00Z"}


@pytest.mark.parametrize(
    ("job", "at", "over"),
    [
        (queued("2026-01-01T00:00:00Z"), "2026-01-01T00:09:59Z", False),
        (queued("2026-01-01T00:00:00Z"), "2026-01-01T00:10:00Z", True),
        (queued("2026-01-01T00:00:00Z", SUSPENDED), "2026-01-02T00:00:00Z", False),
        (queued("2026-01-01T00:00:00Z", RESUMED), "2026-01-01T00:20:01Z", False),
        (queued("2026-01-01T00:00:00Z", RESUMED), "2026-01-01T00:29:59Z", False),
        (queued("2026-01-01T00:00:00Z", RESUMED), "2026-01-01T00:30:00Z", True),
    ],
    ids=["in time", "too late", "in a queue", "just admitted", "in time after the queue", "too late after the queue"],
)
def test_time_in_a_queue_does_not_count_towards_the_start(job: dict[str, Any], at: str, over: bool) -> None:
    found = completion_of(job, "u", now=datetime.fromisoformat(at).timestamp(), startup_timeout=600)
    assert (found is not None and found.status == "startup_timeout") is over


@pytest.mark.parametrize(
    ("reattached", "at", "over"),
    [
        (None, "2026-01-01T00:10:00Z", True),
        ("2026-01-01T00:10:05Z", "2026-01-01T00:10:06Z", False),
        ("2026-01-01T00:10:05Z", "2026-01-01T00:20:04Z", False),
        ("2026-01-01T00:10:05Z", "2026-01-01T00:20:05Z", True),
    ],
    ids=["its own", "just found", "in time", "too late"],
)
def test_a_try_that_finds_a_job_waits_for_its_start_as_long_as_the_try_that_made_it(
    reattached: str | None, at: str, over: bool
) -> None:
    """With on_kill_action="keep" the job is as old as all tries before, and each would else end at its first look."""
    since = None if reattached is None else datetime.fromisoformat(reattached).timestamp()
    now = datetime.fromisoformat(at).timestamp()
    found = completion_of(queued("2026-01-01T00:00:00Z"), "u", now=now, startup_timeout=600, reattached_at=since)
    assert (found is not None and found.status == "startup_timeout") is over


@pytest.mark.parametrize("state", ["Succeeded", "Failed", "Running", "Created"])
def test_a_job_that_has_the_name_by_now_is_not_the_tasks(state):
    """Whatever has become of that one: the task's own was deleted."""
    conditions = [{"type": state, "status": "True", "reason": state, "message": "another's"}]
    job = {"metadata": {"name": "digits", "uid": "another"}, "status": {"state": state, "conditions": conditions}}
    found = completion_of(job, "its own", now=0.0)
    assert found is not None
    assert (found.status, "another has its name" in found.message) == ("deleted", True)
