"""Deadlines, back-off, time to live and suspension as a controller finds them that has seen nothing of what was before.

All that it knows is the job as the API server gives it: each job here goes through JSON between any two looks.
"""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, PodBuilder, make_mxjob, make_pod, make_services, plan

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import Effects, Observed
from mxnet_operator.plan.actions import CreatePod, DeleteJob

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


def with_suspend(job: MXJob, suspend: bool) -> MXJob:
    policy = msgspec.structs.replace(job.spec.run_policy, suspend=suspend)
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, run_policy=policy))


def running(**run_policy: Any) -> MXJob:
    """A job that was created and began to run at NOW."""
    job = new_job(**run_policy)
    job = stored(job, look(job, 0))
    return stored(job, look(job, 0, *workers(job)))


def suspended(job: MXJob, at: float) -> MXJob:
    job = with_suspend(job, True)
    job = stored(job, look(job, at, *workers(job)))
    return stored(job, look(job, at))


def resumed(job: MXJob, at: float) -> MXJob:
    job = with_suspend(job, False)
    job = stored(job, look(job, at))
    return stored(job, look(job, at, *workers(job)))


def state(job: MXJob, answer: Effects) -> str:
    return job.status.state if answer.status is None else answer.status.state


def waits_for_nothing(answer: Effects) -> bool:
    return answer.status is None and answer.requeue_after is None


class TestActiveDeadline:
    def test_restarts_do_not_give_a_job_more_time(self) -> None:
        job = running(activeDeadlineSeconds=100)
        job = stored(job, look(job, 50, *killed(job)))
        job = stored(job, look(job, 70, *workers(job)))
        assert look(job, 70, *workers(job)).requeue_after == 30 * SECOND
        assert state(job, look(job, 100, *workers(job))) == "Failed"

    def test_it_ends_a_job_that_waits_to_be_tried_again(self) -> None:
        job = running(activeDeadlineSeconds=5)
        job = stored(job, look(job, 1, *killed(job)))
        assert look(job, 1).requeue_after == 4 * SECOND
        assert state(job, look(job, 5)) == "Failed"

    def test_a_suspended_job_has_none_and_a_resumed_one_all_of_it(self) -> None:
        job = suspended(running(activeDeadlineSeconds=100), 90)
        assert waits_for_nothing(look(job, 1000))
        job = resumed(job, 1000)
        assert look(job, 1000, *workers(job)).requeue_after == 100 * SECOND
        assert state(job, look(job, 1100, *workers(job))) == "Failed"


class TestProgressDeadline:
    def test_in_a_restart_it_counts_from_the_teardown(self) -> None:
        job = running(progressDeadlineSeconds=60)
        job = stored(job, look(job, 50, *killed(job)))
        going = tuple(pod.deleting() for pod in killed(job)[:1])
        going = tuple(pod.set(attempt=0) for pod in going)
        assert look(job, 110, *going).requeue_after == SECOND
        assert state(job, look(job, 111, *going)) == "Failed"

    def test_a_suspended_job_has_none(self) -> None:
        job = suspended(running(progressDeadlineSeconds=1), 10)
        assert waits_for_nothing(look(job, 10**6))


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
        job = with_suspend(suspended(job, 10), False)
        assert len([a for a in look(job, 10).actions if isinstance(a, CreatePod)]) == 2
        job = resumed(suspended(running(backoffLimit=0), 10), 20)
        assert (job.status.restarts, job.status.restarts_count_towards_max, job.status.state) == (1, 0, "Running")


class TestSuspension:
    def test_half_way_it_is_carried_on(self) -> None:
        job = with_suspend(running(), True)
        job = stored(job, look(job, 0, *workers(job)))
        old = tuple(pod.set(attempt=0) for pod in workers(job))
        assert {type(action).__name__ for action in look(job, 1, *old).actions} == {"DeletePod", "DeleteService"}
        assert state(job, look(job, 2)) == "Suspended"

    def test_a_restarting_job_is_suspended_and_comes_back_without_waiting(self) -> None:
        job = running()
        job = stored(job, look(job, 0, *killed(job)))
        job = with_suspend(job, True)
        job = stored(job, look(job, 1))
        assert (job.status.state, job.status.restarts_count_towards_max) == ("Suspended", 1)
        answer = look(with_suspend(job, False), 2)
        assert [action.attempt for action in answer.actions if isinstance(action, CreatePod)] == [1, 1]


class TestTimeToLive:
    @pytest.mark.parametrize("codes", [(0, 0), (0, 1)])
    def test_a_finished_job_goes_when_its_time_has_come_whoever_sees_it(self, codes: tuple[int, int]) -> None:
        job = running(ttlSecondsAfterFinished=100)
        ended = tuple(
            pod.succeeded() if code == 0 else pod.failed(code) for pod, code in zip(workers(job), codes, strict=True)
        )
        job = stored(job, look(job, 10, *ended))
        assert look(job, 10, *ended).requeue_after == 100 * SECOND
        assert look(job, 10**6).actions == (DeleteJob("digits", job.metadata.uid),)

    @pytest.mark.parametrize("waiting", ["Running", "Restarting", "Suspended"])
    def test_no_other_job_ever_does(self, waiting: str) -> None:
        job = running(ttlSecondsAfterFinished=0)
        if waiting == "Restarting":
            job = stored(job, look(job, 0, *killed(job)))
        elif waiting == "Suspended":
            job = suspended(job, 0)
        assert job.status.state == waiting
        pods = () if waiting == "Suspended" else workers(job)
        assert not any(isinstance(action, DeleteJob) for action in look(job, 10**6, *pods).actions)
