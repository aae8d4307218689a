"""Counts in a status that no condition comes with: they are right within five seconds, at one write for a burst."""

from datetime import timedelta

import msgspec
import pytest
from builders import NOW, make_mxjob, make_pod, observe, plan

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import Effects

SECOND = timedelta(seconds=1)
WAITING = "0/2 nodes are available: 2 Insufficient cpu."


def after(job: MXJob, answer: Effects) -> MXJob:
    return job if answer.status is None else msgspec.structs.replace(job, status=answer.status)


def waiting_job(running: int) -> tuple[MXJob, Effects, list[object]]:
    """A job of four workers, the last of which finds no node, some time after so many have started."""
    job = make_mxjob().worker(4).obj()
    pods = [make_pod(job, "Worker", index) for index in range(4)]
    pods[3] = pods[3].unscheduled().set(unschedulable=WAITING)
    job = after(job, plan(job, observe(job, *pods), NOW))
    for pod in pods[:running]:
        pod.running()
    return job, plan(job, observe(job, *pods), NOW + SECOND), pods  # type: ignore[return-value]


@pytest.mark.parametrize("running", [1, 2, 3])
def test_a_job_that_waits_for_one_pod_says_how_many_of_the_others_run(running: int) -> None:
    job, answer, pods = waiting_job(running)
    assert (job.status.ready, answer.status) == ("0/4", None)
    assert answer.requeue_after == 4 * SECOND
    answer = plan(job, observe(job, *pods), NOW + 5 * SECOND)  # type: ignore[arg-type]
    assert answer.status.ready == f"{running}/4"
    assert answer.status.replica_statuses["Worker"].active == running
    assert plan(after(job, answer), observe(job, *pods), NOW + 60 * SECOND).status is None  # type: ignore[arg-type]


def test_pods_that_start_one_after_the_other_cost_one_write_once_it_is_quiet() -> None:
    job = make_mxjob().worker(40).obj()
    pods = [make_pod(job, "Worker", index) for index in range(40)]
    pods[39] = pods[39].unscheduled().set(unschedulable=WAITING)
    job, writes = after(job, plan(job, observe(job, *pods), NOW)), 0
    for second in range(39):
        pods[second].set(phase="Running", started_at=NOW + second * SECOND)
        answer = plan(job, observe(job, *pods), NOW + second * SECOND)
        job, writes = after(job, answer), writes + (answer.status is not None)
    assert writes == 0
    answer = plan(job, observe(job, *pods), NOW + (38 + 5) * SECOND)
    assert answer.status.ready == "39/40"


@pytest.mark.parametrize("ahead", [timedelta(minutes=1), timedelta(days=1)])
def test_a_node_whose_clock_is_ahead_delays_nothing(ahead: timedelta) -> None:
    job, _, pods = waiting_job(0)
    pods[0].set(phase="Running", started_at=NOW + ahead)  # type: ignore[attr-defined]
    answer = plan(job, observe(job, *pods), NOW + 5 * SECOND)  # type: ignore[arg-type]
    assert answer.status.ready == "1/4"
