"""Jobs that training-operator 1.8.1 made: conditions without a state, a startTime that outlives suspension."""

from datetime import timedelta

import pytest
from builders import NOW, make_mxjob, make_pod, observe, plan

from mxnet_operator.plan import Effects, Observed
from mxnet_operator.plan.actions import CreatePod, CreateService


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_a_job_that_is_over_gets_its_state_and_nothing_else(end: str) -> None:
    job = make_mxjob().worker(2).condition("Created").condition(end).without_state().obj()
    answer = plan(job, Observed(), NOW)
    assert (answer.status.state, answer.status.conditions) == (end, job.status.conditions)
    assert answer.status.completion_time is None
    assert (answer.actions, answer.events) == ((), ())


def test_a_running_job_gets_its_state_and_the_service_that_it_lacks() -> None:
    job = make_mxjob().worker(1).condition("Created").condition("Running").without_state().obj()
    answer = plan(job, Observed((make_pod(job, "Worker").running().obj(),)), NOW)
    assert (answer.status.state, answer.status.conditions) == ("Running", job.status.conditions)
    assert answer.actions == (CreateService("digits-mx", "replicas", beside_pods=True),)


def test_a_suspended_job_has_no_start_time() -> None:
    job = make_mxjob().worker(1).run_policy(suspend=True).condition("Created").condition("Suspended").obj()
    answer = plan(job, Observed(), NOW)
    assert (answer.status.state, answer.status.start_time) == ("Suspended", None)


def test_one_that_was_resumed_before_we_saw_it_has_all_its_time() -> None:
    builder = make_mxjob().worker(1).run_policy(activeDeadlineSeconds=60).condition("Created").condition("Suspended")
    job = builder.without_state().obj()
    assert job.status.start_time is not None
    assert job.status.start_time < NOW - timedelta(seconds=60)
    answer = plan(job, observe(job), NOW)
    assert [action for action in answer.actions if isinstance(action, CreatePod)] == [CreatePod("Worker", 0, 0)]
    assert (answer.status.state, answer.status.start_time) == ("Created", NOW)


def test_one_in_order_is_left_alone() -> None:
    job = make_mxjob().worker(1).condition("Created").condition("Succeeded").obj()
    assert plan(job, Observed(), NOW) == Effects()
