"""A job that goes with its Argo Workflow: when it asks for that, and what it comes to."""

from datetime import timedelta
from functools import partial

import msgspec
import pytest
from builders import NOW, make_mxjob, make_pod, make_services, with_policy
from builders import plan as decided

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.argo.policy import READ_INTERVAL, ArgoPolicy, WorkflowOver, goes_with_workflow
from mxnet_operator.plan import Observed
from mxnet_operator.plan.actions import DeleteJob

plan = partial(decided, integrations=(ArgoPolicy(),))

WHY = "nightly is being shut down (Terminate)"


def job(asks: str = "true", *conditions: str, **run_policy: bool) -> MXJob:
    builder = make_mxjob().worker(1).run_policy(**run_policy)
    for condition in conditions:
        builder.condition(condition)
    made = builder.obj()
    annotations = {names.DELETE_WITH_WORKFLOW_ANNOTATION: asks}
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, annotations=annotations))


@pytest.mark.parametrize("suspended", [False, True])
def test_a_job_whose_workflow_is_at_its_end_is_deleted_and_says_why(suspended: bool) -> None:
    it = job("true", "Created", suspend=suspended)
    running = Observed((make_pod(it, "Worker").running().obj(),), make_services(it), facts=(WorkflowOver(WHY),))
    answer = plan(it, running, NOW)
    assert answer.actions == (DeleteJob(it.metadata.name, it.metadata.uid),)
    (event,) = answer.events
    assert (event.type, event.reason) == ("Normal", "WorkflowOver")
    assert WHY in event.message
    assert answer.status is None


@pytest.mark.parametrize("suspended", [False, True])
def test_while_the_workflow_goes_on_the_job_is_run_as_ever_and_looked_at_again(suspended: bool) -> None:
    asks, does_not = (job(value, "Created", suspend=suspended) for value in ("true", "false"))
    tied, free = (plan(each, Observed((), make_services(each)), NOW) for each in (asks, does_not))
    assert (tied.actions, tied.status) == (free.actions, free.status)
    assert (tied.requeue_after, free.requeue_after) == (READ_INTERVAL, None)


def test_what_must_be_seen_to_earlier_is() -> None:
    it = with_policy(job("true", "Created", "Running"), active_deadline_seconds=3603)  # since 11:00
    pods = (make_pod(it, "Worker").running().obj(),)
    assert plan(it, Observed(pods, make_services(it)), NOW).requeue_after == timedelta(seconds=3)


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_a_job_that_is_over_stays_for_as_long_as_its_ttl_says(end: str) -> None:
    it = job("true", "Created", end)
    assert not goes_with_workflow(it)
    answer = plan(it, Observed(children=make_services(it), facts=(WorkflowOver(WHY),)), NOW)
    assert not any(isinstance(action, DeleteJob) for action in answer.actions)


@pytest.mark.parametrize("asks", ["false", "", "True", "yes"])
def test_only_the_word_true_asks_for_it(asks: str) -> None:
    assert not goes_with_workflow(job(asks))


def test_a_job_of_an_older_kind_can_t_be_deleted_by_the_controller() -> None:
    assert not goes_with_workflow(msgspec.structs.replace(job(), api_version="mlkube.io/v1beta1"))
    assert goes_with_workflow(job())
