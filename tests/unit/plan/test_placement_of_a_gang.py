"""What a job says while the local cluster's scheduler keeps all of its pods waiting, with numbers that are right."""

from datetime import datetime, timedelta

import msgspec
from builders import NOW, make_mxjob, make_pod, observe, plan

from mxnet_operator.api.conditions import PODS_SCHEDULED
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import Effects

SECOND = timedelta(seconds=1)
MISSING_2 = "7 of 9 can be placed, missing 2 nvidia.com/gpu; 5 jobs before it in the queue"
MISSING_1 = "8 of 9 can be placed, missing 1 nvidia.com/gpu; 4 jobs before it in the queue"


def look(job: MXJob, words: str, now: datetime) -> tuple[MXJob, Effects]:
    pods = [make_pod(job, "Worker", index).unscheduled().set(unschedulable=words) for index in range(9)]
    answer = plan(job, observe(job, *pods), now)
    return (job if answer.status is None else msgspec.structs.replace(job, status=answer.status)), answer


def said(job: MXJob) -> str:
    return next(c.message for c in job.status.conditions if c.type == PODS_SCHEDULED)


def test_it_is_the_schedulers_words_for_all_of_them() -> None:
    job, _ = look(make_mxjob().worker(9).obj(), MISSING_2, NOW)
    assert said(job) == MISSING_2


def test_other_numbers_are_written_within_5_seconds_and_not_more_often() -> None:
    job, _ = look(make_mxjob().worker(9).obj(), MISSING_2, NOW)
    job, answer = look(job, MISSING_1, NOW + SECOND)
    assert (said(job), answer.status, answer.requeue_after) == (MISSING_2, None, 3 * SECOND)
    job, _ = look(job, MISSING_1, NOW + 4 * SECOND)
    assert said(job) == MISSING_1


def test_a_job_that_waits_too_long_fails_in_the_schedulers_words() -> None:
    job = make_mxjob().worker(9).run_policy(schedulingPolicy={"scheduleTimeoutSeconds": 60}).obj()
    job, _ = look(job, MISSING_2, NOW)
    job, _ = look(job, MISSING_2, NOW + 60 * SECOND)
    assert job.status.state == "Failed"
    assert job.status.conditions[-1].message.endswith(f"within 60 s (scheduleTimeoutSeconds): {MISSING_2}")
