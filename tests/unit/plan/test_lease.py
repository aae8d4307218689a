"""A job whose lease has run out: which leases are kept, what their end comes to, and what it never touches."""

from datetime import timedelta

import msgspec
import pytest
from builders import NOW, make_mxjob, make_pod, make_services, plan

from mxnet_operator.api import names
from mxnet_operator.api.job_lease import JobLease, annotations_of, lease_of
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.argo.policy import ArgoPolicy, WorkflowOver
from mxnet_operator.plan import Observed, kept_lease
from mxnet_operator.plan.actions import DeleteJob, SuspendJob

OUT = timedelta(0)
LEASE = JobLease(60, "delete", "2:0192", "2026-11-22T06:00:00Z")


def job(lease: JobLease = LEASE, *conditions: str, **run_policy: bool) -> MXJob:
    builder = make_mxjob().worker(1).run_policy(**run_policy)
    for condition in conditions:
        builder.condition(condition)
    made = builder.obj()
    metadata = msgspec.structs.replace(made.metadata, annotations=annotations_of(lease), resource_version="7")
    return msgspec.structs.replace(made, metadata=metadata)


def with_action(action: str) -> JobLease:
    return msgspec.convert({"duration": 60, "action": action, "holder": "2:0192", "renewed": "then"}, JobLease)


@pytest.mark.parametrize("state", ["Created", "Running", "Restarting"])
@pytest.mark.parametrize(("action", "end"), [("delete", DeleteJob), ("suspend", SuspendJob)])
@pytest.mark.parametrize("left", [OUT, timedelta(seconds=-5)])
def test_a_job_whose_lease_has_run_out_is_ended_unless_it_is_renewed_meanwhile(
    state: str, action: str, end: type[DeleteJob | SuspendJob], left: timedelta
) -> None:
    it = job(with_action(action), "Created", state)
    running = Observed((make_pod(it, "Worker").running().obj(),), make_services(it), lease_left=left)
    answer = plan(it, running, NOW)
    assert answer.actions == (end(it.metadata.name, it.metadata.uid, "7"),)
    assert answer.status is None
    (event,) = answer.events
    assert (event.type, event.reason) == ("Warning", "LeaseExpired")
    assert "2:0192" in event.message
    assert f"{action.rstrip('e')}ed" in event.message


@pytest.mark.parametrize("suspended", [False, True])
def test_while_the_lease_runs_the_job_is_run_as_ever_and_looked_at_at_its_end(suspended: bool) -> None:
    it = job(LEASE, "Created", suspend=suspended)
    left = timedelta(seconds=17)
    leased, free = (plan(it, Observed((), make_services(it), lease_left=each), NOW) for each in (left, None))
    assert (leased.actions, leased.status, leased.events) == (free.actions, free.status, free.events)
    assert (leased.requeue_after, free.requeue_after) == (left, None)


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_a_job_that_is_over_keeps_no_lease(end: str) -> None:
    it = job(LEASE, "Created", end)
    assert kept_lease(it) is None
    answer = plan(it, Observed(children=make_services(it), lease_left=OUT), NOW)
    assert not any(isinstance(action, (DeleteJob, SuspendJob)) for action in answer.actions)


@pytest.mark.parametrize(("action", "keeps"), [("delete", True), ("suspend", False)])
def test_a_suspended_job_keeps_a_lease_only_where_its_end_would_delete_it(action: str, keeps: bool) -> None:
    """A job in a queue that nobody waits for would start one day."""
    it = job(with_action(action), "Created", suspend=True)
    assert (kept_lease(it) is not None) is keeps
    ends = [a for a in plan(it, Observed(lease_left=OUT), NOW).actions if isinstance(a, (DeleteJob, SuspendJob))]
    assert bool(ends) is keeps


def test_a_job_of_an_older_kind_can_t_be_ended_by_the_controller() -> None:
    assert kept_lease(job()) == LEASE
    assert kept_lease(msgspec.structs.replace(job(), api_version="mlkube.io/v1beta1")) is None


def test_one_that_is_being_deleted_keeps_none() -> None:
    it = job()
    going = msgspec.structs.replace(it.metadata, deletion_timestamp=NOW)
    assert kept_lease(msgspec.structs.replace(it, metadata=going)) is None


@pytest.mark.parametrize("duration", ["", "0", "-1", "1.5", "1h", "an hour", "1e3", "٣", "9" * 30, " 60", str(2**63)])
def test_a_duration_that_is_a_mistake_makes_no_lease(duration: str) -> None:
    assert lease_of({**annotations_of(LEASE), names.LEASE_DURATION_ANNOTATION: duration}) is None


@pytest.mark.parametrize("action", ["", "keep", "Delete", "none"])
def test_an_unknown_action_makes_no_lease(action: str) -> None:
    assert lease_of({**annotations_of(LEASE), names.LEASE_ACTION_ANNOTATION: action}) is None


def test_a_lease_is_read_as_it_was_written_and_needs_no_more_than_a_duration() -> None:
    assert lease_of(annotations_of(LEASE)) == LEASE
    assert lease_of({names.LEASE_DURATION_ANNOTATION: "60"}) == JobLease(60)
    assert lease_of({}) is None


def test_a_workflow_at_its_end_is_said_first() -> None:
    it = job()
    both = Observed(children=make_services(it), facts=(WorkflowOver("nightly is over"),), lease_left=OUT)
    assert [event.reason for event in plan(it, both, NOW, integrations=(ArgoPolicy(),)).events] == ["WorkflowOver"]
