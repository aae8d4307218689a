"""Deadlines, back-off, time to live and suspension as a controller finds them that has seen nothing of what was before.

All that it knows is the job as the API server gives it: each job here goes through JSON between any two looks.
"""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, PodBuilder, make_mxjob, make_pod, make_services, plan, with_policy

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import Effects, Observed
from mxnet_operator.plan.actions import CreatePod

SECOND = timedelta(seconds=1)


def stored(job: MXJob, answer: Effects) -> MXJob:
    """The job with the status of the plan, as another controller reads it."""
    assert answer.status is not None
    whole = msgspec.structs.replace(job, status=answer.status)
    return msgspec.json.decode(msgspec.json.encode(whole), type=MXJob)


def look(job: MXJob, at: float, *pods: PodBuilder) -> Effects:
    services = tuple(service for service in make_services(job) if service.name == "digits-mx")
    return plan(job, Observed(tuple(pod.obj() for pod in pods), services), NOW + at * SECOND)


def new_job(**run_policy: Any) -> MXJob:
    return make_mxjob().worker(2).restart("ExitCode").run_policy(**run_policy).obj()


def workers(job: MXJob) -> tuple[PodBuilder, ...]:
    """Both workers of the present attempt, running."""
    return tuple(make_pod(job, "Worker", index).running().set(attempt=job.status.restarts) for index in (0, 1))


def killed(job: MXJob) -> tuple[PodBuilder, ...]:
    well, failed = workers(job)
    return well, failed.failed(137)


def running(**run_policy: Any) -> MXJob:
    """A job that was created and began to run at NOW."""
    job = new_job(**run_policy)
    job = stored(job, look(job, 0))
    return stored(job, look(job, 0, *workers(job)))


def suspended(job: MXJob, at: float) -> MXJob:
    job = with_policy(job, suspend=True)
    job = stored(job, look(job, at, *workers(job)))
    return stored(job, look(job, at))


def resumed(job: MXJob, at: float) -> MXJob:
    job = with_policy(job, suspend=False)
    job = stored(job, look(job, at))
    return stored(job, look(job, at, *workers(job)))


def state(job: MXJob, answer: Effects) -> str:
    return job.status.state if answer.status is None else answer.status.state


class TestProgressDeadline:
    def test_in_a_restart_it_counts_from_the_teardown(self) -> None:
        job = running(progressDeadlineSeconds=60)
        job = stored(job, look(job, 50, *killed(job)))
        going = tuple(pod.deleting() for pod in killed(job)[:1])
        going = tuple(pod.set(attempt=0) for pod in going)
        assert look(job, 110, *going).requeue_after == SECOND
        assert state(job, look(job, 111, *going)) == "Failed"


class TestBackOff:
    def test_it_is_waited_for_by_whoever_looks(self) -> None:
        job = running()
        job = stored(job, look(job, 0, *killed(job)))
        wait = look(job, 0).requeue_after
        assert wait is not None
        assert look(job, 3).requeue_after == wait - 3 * SECOND
        assert look(job, 9).actions == ()
        assert len([a for a in look(job, 12).actions if isinstance(a, CreatePod)]) == 2

    @pytest.mark.parametrize("minutes", [2, 60, 60 * 24 * 365])
    def test_a_clock_that_is_set_back_makes_nobody_wait_for_it(self, minutes: int) -> None:
        """The next attempt waited for the hour to come again."""
        job = stored(job := running(), look(job, 0, *killed(job)))
        assert len([a for a in look(job, -60 * minutes).actions if isinstance(a, CreatePod)]) == 2

    @pytest.mark.parametrize("seconds", [1, 10, 60])
    def test_the_clock_of_another_leader_that_is_a_little_behind_does_not_cut_it_short(self, seconds: int) -> None:
        job = stored(job := running(), look(job, 0, *killed(job)))
        wait = look(job, -seconds).requeue_after
        assert wait is not None
        assert 10 * SECOND <= wait <= (60 + 11) * SECOND

    def test_a_suspension_neither_counts_nor_waits(self) -> None:
        job = running(backoffLimit=0)
        job = with_policy(suspended(job, 10), suspend=False)
        assert len([a for a in look(job, 10).actions if isinstance(a, CreatePod)]) == 2
        job = resumed(suspended(running(backoffLimit=0), 10), 20)
        assert (job.status.restarts, job.status.restarts_count_towards_max, job.status.state) == (1, 0, "Running")
