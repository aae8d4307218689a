"""What a plan asks for before it decides, and that it decides once it knows."""

from datetime import timedelta

import msgspec
import pytest
from builders import NOW, make_mxjob, make_pod, observe

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import Effects, NodeView, Observed, Reads, plan
from mxnet_operator.plan.actions import CreatePod

GANG = {"Scheduler": 1, "Server": 2, "Worker": 2}


def gang(condition: str = "Running", **status: object) -> MXJob:
    """A gang that this controller has started."""
    job = make_mxjob().gang().restart("OnFailure").condition("Created").condition(condition).obj()
    fields = {"started_replicas": GANG, "started_scope": "Job"} | status
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, **fields))


def knowing(observed: Observed, **facts: object) -> Observed:
    return msgspec.structs.replace(observed, **facts)


def test_a_teardown_by_a_cache_of_pods_that_lags_behind_the_job_asks_for_the_pods_first() -> None:
    job = gang()
    lagging = knowing(observe(job), pods_lag=True)
    assert plan(job, lagging, NOW) == Reads(pods="labelled")
    answer = plan(job, knowing(lagging, pods_listed="labelled"), NOW)
    assert isinstance(answer, Effects)
    assert answer.status.state == "Restarting"


def test_a_sound_job_is_not_listed_though_the_cache_of_pods_lags_behind() -> None:
    job = gang()
    pods = [make_pod(job, kind, index).running() for kind, count in GANG.items() for index in range(count)]
    assert isinstance(plan(job, knowing(observe(job, *pods), pods_lag=True), NOW), Effects)


@pytest.mark.parametrize(("is_newest", "created"), [(True, 5), (False, 0)])
def test_members_of_a_gang_are_created_by_the_newest_version_of_their_job_only(is_newest: bool, created: int) -> None:
    job = make_mxjob().gang().obj()
    assert plan(job, observe(job), NOW) == Reads(newest_job=True)
    answer = plan(job, knowing(observe(job), job_is_newest=is_newest), NOW)
    assert isinstance(answer, Effects)
    assert sum(isinstance(action, CreatePod) for action in answer.actions) == created
    assert is_newest or answer == Effects(requeue_after=timedelta(seconds=1))


def test_the_node_of_a_pod_that_does_not_go_is_asked_for_once() -> None:
    job = gang("Restarting", restarts=1)
    pod = make_pod(job, "Worker").running().deleting().set(delete_by=NOW - timedelta(minutes=5))
    observed = observe(job, pod)
    assert plan(job, observed, NOW) == Reads(nodes=("node",))
    known = knowing(observed, nodes=(NodeView(name="node", state="Present"),))
    assert isinstance(plan(job, known, NOW), Effects)


def test_the_pods_of_a_job_that_another_operator_began_are_listed_by_their_owner() -> None:
    job = make_mxjob().gang().condition("Created").condition("Running").obj()
    assert plan(job, observe(job), NOW) == Reads(pods="owned")
