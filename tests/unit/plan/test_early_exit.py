"""Schedulers and servers that exit with 0 before there is anything to serve."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, PodBuilder, condition, make_mxjob, make_pod, observe, plan

from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan import Effects

SECOND = timedelta(seconds=1)
TRAINING = {"Scheduler": 1, "Server": 1, "Worker": 2}
TUNING = {"TunerTracker": 1, "TunerServer": 1, "Tuner": 1}


def job_of(shape: dict[str, int], **policy: Any) -> MXJob:
    builder = make_mxjob().run_policy(**policy).condition("Created")
    for replica_type, count in shape.items():
        builder = builder.replicas(replica_type, count)
    return builder.obj()


def exited(job: MXJob, replica_type: str, seconds: float, lived: float | None = 0) -> PodBuilder:
    """Done so many seconds from NOW on, having lived so long; None: nobody knows when it started."""
    end = NOW + seconds * SECOND
    started = None if lived is None else end - lived * SECOND
    return make_pod(job, replica_type).succeeded().set(finished_at=end, started_at=started)


def running(job: MXJob, replica_type: str, index: int = 0, since: float = 0) -> PodBuilder:
    return make_pod(job, replica_type, index).running().set(started_at=NOW + since * SECOND)


def look(job: MXJob, seconds: float, *pods: PodBuilder) -> Effects:
    return plan(job, observe(job, *pods), NOW + seconds * SECOND)


def said(answer: Effects) -> Condition | None:
    return condition(answer, "ServersExited")


def bash(job: MXJob) -> list[PodBuilder]:
    """The image's entrypoint is a shell, which ends at once; the workers have a command."""
    return [
        exited(job, "Scheduler", 1),
        exited(job, "Server", 1),
        running(job, "Worker", 0),
        running(job, "Worker", 1, since=2),
    ]


def test_it_is_said_once_workers_still_run_a_minute_later() -> None:
    job = job_of(TRAINING)
    early = look(job, 61, *bash(job))
    assert said(early) is None
    assert early.requeue_after == SECOND
    answer = look(job, 62, *bash(job))
    condition = said(answer)
    assert (condition.status, condition.reason) == ("True", "ExitedEarly")
    assert condition.message == (
        "scheduler-0, server-0 exited with code 0 before any training could begin: worker-0, worker-1 probably wait for"
        " ever. Check the command and the image of the Scheduler and Server."
    )
    assert [(event.type, event.reason, event.message) for event in answer.events] == [
        ("Warning", "ServersExited", condition.message)
    ]
    assert answer.status.state == "Running"


def test_of_a_tuning_likewise() -> None:
    job = job_of(TUNING)
    pods = [exited(job, "TunerTracker", 1), exited(job, "TunerServer", 1), running(job, "Tuner")]
    condition = said(look(job, 90, *pods))
    assert condition.message == (
        "tunertracker-0, tunerserver-0 exited with code 0 before any tuning could begin: tuner-0 probably waits for"
        " ever. Check the command and the image of the TunerTracker and TunerServer."
    )


@pytest.mark.parametrize("shape", [TRAINING, TUNING], ids=["training", "tuning"])
def test_a_smoke_test_whose_every_replica_exits_at_once_succeeds(shape: dict[str, int]) -> None:
    job = job_of(shape)
    pods = [
        make_pod(job, kind, index).succeeded(NOW).set(started_at=NOW)
        for kind, count in shape.items()
        for index in range(count)
    ]
    answer = look(job, 1, *pods)
    assert answer.status.state == "Succeeded"
    assert said(answer) is None


@pytest.mark.parametrize(
    ("server_ended", "lived", "worker_started", "is_early"),
    [
        (1, 0, 0, True),  # at once
        (300, 300, 301, True),  # a worker came later
        (300, 0, 0, True),  # the server came later, and ended at once
        (300, None, 299, True),
        (300, 300, 0, False),  # a training that is over; the workers evaluate
        (10, 10, 0, False),
    ],
)
def test_what_counts_is_whether_there_was_time_to_serve(
    server_ended: float, lived: float | None, worker_started: float, is_early: bool
) -> None:
    job = job_of(TRAINING)
    pods = [
        running(job, "Scheduler"),
        exited(job, "Server", server_ended, lived),
        running(job, "Worker", 0),
        running(job, "Worker", 1, since=worker_started),
    ]
    assert (said(look(job, 3600, *pods)) is not None) == is_early


def test_a_worker_that_has_not_started_had_nothing_to_be_served_with() -> None:
    job = job_of(TRAINING)
    pods = [*bash(job)[:3], make_pod(job, "Worker", 1)]
    assert said(look(job, 3600, *pods)) is not None
    nobody_runs = [*bash(job)[:2], make_pod(job, "Worker", 0), make_pod(job, "Worker", 1)]
    assert said(look(job, 3600, *nobody_runs)) is None


def test_without_any_timestamp_nothing_is_claimed() -> None:
    job = job_of(TRAINING)
    pods = [
        make_pod(job, "Scheduler").succeeded().set(finished_at=None),
        make_pod(job, "Server").succeeded().set(finished_at=None),
        running(job, "Worker", 0).set(started_at=None),
        running(job, "Worker", 1).set(started_at=None),
    ]
    assert said(look(job, 3600, *pods)) is None


@pytest.mark.parametrize(("seconds", "at"), [(10, 62), (60, 62), (600, 602)])
def test_a_progress_deadline_ends_it_but_not_before_it_is_said(seconds: int, at: float) -> None:
    job = job_of(TRAINING, progressDeadlineSeconds=seconds)
    before = look(job, at - 1, *bash(job))
    assert before.status is None or before.status.state == "Running"
    answer = look(job, at, *bash(job))
    assert answer.status.state == "Failed"
    assert answer.status.conditions[-1].message.startswith(
        f"mxjob digits is failed because it made no progress for {seconds} s: scheduler-0, server-0 exited with code 0"
    )


def test_it_is_taken_back_with_the_attempt() -> None:
    job = job_of(TRAINING)
    answer = look(job, 90, *bash(job))
    assert answer.status is not None
    job = msgspec.structs.replace(job, status=answer.status)
    fresh = [running(job, "Scheduler"), running(job, "Server"), running(job, "Worker", 0), running(job, "Worker", 1)]
    condition = said(look(job, 100, *fresh))
    assert condition.status == "False"


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=365)])
def test_a_clock_that_was_set_back_delays_it_by_two_minutes_at_most(ahead: timedelta) -> None:
    job = job_of(TRAINING)
    pods = [exited(job, "Scheduler", 0).set(finished_at=NOW + ahead), *bash(job)[1:]]
    starts: list[datetime] = [NOW + ahead]
    pods[2].set(started_at=starts[0])
    assert said(look(job, 1, *pods)) is not None
