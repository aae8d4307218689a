"""A Scheduler that goes on though all Workers are done: the words, the minute, and then success."""

from datetime import datetime, timedelta

import msgspec
import pytest
from builders import NOW, JobBuilder, PodBuilder, after, condition, make_mxjob, make_pod, observe, plan

from mxnet_operator.api.job_lease import JobLease, annotations_of
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan import Effects
from mxnet_operator.plan.actions import StopPod
from mxnet_operator.plan.success import WORDS

SECOND = timedelta(seconds=1)


def gang() -> JobBuilder:
    builder = make_mxjob().scheduler().server().worker(2).condition("Created").condition("Running")
    return builder.run_policy(cleanPodPolicy="None")


def workers_done(job: MXJob, at: datetime | None = NOW, **scheduler: object) -> list[PodBuilder]:
    return [
        make_pod(job, "Scheduler").running().set(**scheduler),
        make_pod(job, "Server").running(),
        make_pod(job, "Worker", 0).succeeded().set(finished_at=NOW - 30 * SECOND),
        make_pod(job, "Worker", 1).succeeded().set(finished_at=at),
    ]


def started(job: MXJob, seconds: float) -> MXJob:
    """A job that has been active for so long."""
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, start_time=NOW - seconds * SECOND))


def look(job: MXJob, seconds: float, at: datetime | None = NOW) -> Effects:
    return plan(job, observe(job, *workers_done(job, at)), NOW + seconds * SECOND)


def left(answer: Effects) -> Condition | None:
    return condition(answer, "SchedulerStillRunning")


def test_for_five_seconds_nothing_is_said_since_its_kubelet_may_tell_later() -> None:
    answer = look(gang().obj(), 4)
    assert left(answer) is None
    assert answer.requeue_after is not None
    assert answer.requeue_after <= SECOND


def test_then_the_job_says_what_it_waits_for_and_for_how_long() -> None:
    answer = look(gang().obj(), 5)
    condition = left(answer)
    assert (condition.status, condition.reason) == ("True", "NoDistributedKVStore")
    assert condition.message == (
        f"All Workers exited with code 0 and scheduler-0 goes on: {WORDS} The job succeeds 60 s after the last Worker."
    )
    assert [(event.type, event.reason) for event in answer.events] == [("Warning", "SchedulerStillRunning")]
    assert answer.requeue_after == 55 * SECOND


def test_a_minute_after_the_last_worker_the_job_has_succeeded_and_what_is_left_is_stopped() -> None:
    job = after(gang().obj(), look(gang().obj(), 5))
    assert look(job, 59).status is None
    answer = look(job, 60)
    job = after(job, answer)
    assert (job.status.state, job.status.conditions[-1].reason) == ("Succeeded", "MXJobSucceeded")
    assert job.status.conditions[-1].message == (
        "MXJob digits is successfully completed. Scheduler-0 went on for 60 s after the last Worker and is stopped: "
        + WORDS
    )
    assert [(event.type, event.reason) for event in answer.events] == [("Normal", "MXJobSucceeded")]
    assert {action.name for action in look(job, 61).actions if isinstance(action, StopPod)} == {
        "digits-scheduler-0",
        "digits-server-0",
    }


def test_a_scheduler_that_ends_in_time_takes_the_words_back() -> None:
    job = after(gang().obj(), look(gang().obj(), 5))
    pods = workers_done(job)
    pods[0] = make_pod(job, "Scheduler").succeeded()
    answer = plan(job, observe(job, *pods), NOW + 20 * SECOND)
    condition = left(answer)
    assert condition.status == "False"
    assert answer.status.conditions[-1].message == "MXJob digits is successfully completed."


def test_one_that_fails_in_that_minute_fails_the_job() -> None:
    job = gang().obj()
    pods = workers_done(job)
    pods[0] = make_pod(job, "Scheduler").failed(137)
    answer = plan(job, observe(job, *pods), NOW + 20 * SECOND)
    assert after(job, answer).status.state == "Failed"


@pytest.mark.parametrize(
    ("run_policy", "server", "state"),
    [
        ({"activeDeadlineSeconds": 40}, {}, "Succeeded"),
        ({"activeDeadlineSeconds": 3600}, {}, "Running"),
        (
            {"schedulingPolicy": {"scheduleTimeoutSeconds": 5}},
            {"phase": "Pending", "node_name": "", "scheduled_at": None},
            "Succeeded",
        ),
        ({"progressDeadlineSeconds": 5}, {"phase": "Pending"}, "Succeeded"),
        ({"suspend": True}, {}, "Succeeded"),
    ],
    ids=["active", "later", "schedule", "progress", "suspend"],
)
def test_a_limit_that_passes_in_that_minute_ends_it_in_success(
    run_policy: dict[str, object], server: dict[str, object], state: str
) -> None:
    job = started(gang().run_policy(**run_policy).obj(), 30)
    pods = [pod.set(scheduled_at=NOW, created_at=NOW) for pod in workers_done(job)]
    pods[1].set(**server)
    after_it = after(job, plan(job, observe(job, *pods), NOW + 12 * SECOND)).status
    assert after_it.state == state
    if state == "Succeeded":
        assert "Scheduler-0 went on for 12 s after the last Worker and is stopped" in after_it.conditions[-1].message


def test_a_job_says_that_its_deadline_ends_the_minute_and_is_requeued_for_it() -> None:
    job = started(gang().run_policy(activeDeadlineSeconds=40).obj(), 0)
    answer = look(job, 5)
    condition = left(answer)
    assert condition.message.endswith("60 s after the last Worker, or when activeDeadlineSeconds is over.")
    assert answer.requeue_after == 35 * SECOND


@pytest.mark.parametrize("restart_policy", ["Never", "OnFailure"])
@pytest.mark.parametrize("lost", ["Scheduler", "Server"])
def test_a_scheduler_or_server_that_is_deleted_in_that_minute_ends_it_in_success(
    lost: str, restart_policy: str
) -> None:
    job = gang().restart(restart_policy).obj()
    scheduler, server, *workers = workers_done(job)
    (scheduler if lost == "Scheduler" else server).deleting()
    answer = plan(job, observe(job, scheduler, server, *workers), NOW + 3 * SECOND)
    assert after(job, answer).status.state == "Succeeded"


def test_a_lease_that_expires_in_that_minute_ends_it_in_success() -> None:
    job = gang().obj()
    lease = annotations_of(JobLease(60, "delete", "2:0192", "2026-11-22T06:00:00Z"))
    job = msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, annotations=lease))
    observed = msgspec.structs.replace(observe(job, *workers_done(job)), lease_left=0 * SECOND)
    assert after(job, plan(job, observed, NOW + 3 * SECOND)).status.state == "Succeeded"


@pytest.mark.parametrize(
    ("policy", "seconds", "state"),
    [("", 60, "Succeeded"), ("AllWorkers", 0, "Succeeded"), ("Scheduler", 86400, "Running")],
)
def test_the_success_policy_says_whether_it_is_waited_for(policy: str, seconds: int, state: str) -> None:
    job = gang().success_policy(policy).obj()
    answer = look(job, seconds)
    assert after(job, answer).status.state == state
    if policy == "Scheduler":
        condition = left(answer)
        assert "successPolicy Scheduler waits for it" in condition.message


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_one_that_has_not_even_started_is_not_waited_for_longer(phase: str) -> None:
    job = make_mxjob().scheduler().worker(2).condition("Created").obj()
    _, _, *workers = workers_done(job)
    pods = [make_pod(job, "Scheduler").set(phase=phase), *workers]
    assert after(job, plan(job, observe(job, *pods), NOW + 60 * SECOND)).status.state == "Succeeded"


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        (None, "Succeeded"),  # no pod tells when
        (NOW + timedelta(seconds=10), "Running"),  # a node's clock is ahead by so much
        (NOW + timedelta(hours=1), "Succeeded"),  # the controller's was set back
    ],
)
def test_no_clock_makes_it_wait_for_long(ended: datetime | None, state: str) -> None:
    job = gang().obj()
    pods = workers_done(job, ended)
    for worker in pods[2:]:
        worker.set(finished_at=ended)
    answer = plan(job, observe(job, *pods), NOW + 6 * SECOND)
    assert (answer.status or job.status).state == state
