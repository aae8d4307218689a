"""What tasks make of jobs that fail, go away, or were never theirs: on a whole Airflow, with real jobs."""

import asyncio

import pytest
from airflow_world import MODES, crosswise
from waiting import eventually

from mxnet_operator.api.conditions import job_state

pytestmark = pytest.mark.whole_airflow


@pytest.mark.sampled
@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_fails_is_shown_and_a_retry_makes_another(world, mode):
    run = world.begin(mode)
    old = run.in_progress()
    run.end(3)
    eventually(lambda: job_state(run.jobs()[old]) == "Failed")
    run.hold()
    new = run.in_progress()
    assert run.succeed().try_number == 2
    log = run.train.log(1)
    assert "MXNetJobFailedError" in log
    assert "exited with code 3" in log
    assert run.train.xcom()["uid"] == new
    assert run.uids() == {old, new}


@pytest.mark.exhaustive
@crosswise
def test_a_job_that_is_deleted_by_hand_is_a_failure_and_a_retry_makes_another(world, mode):
    run = world.begin(mode)
    old = run.in_progress()
    world.cluster.delete(run.jobs()[old])
    run.replaced(old)
    assert run.succeed().try_number == 2
    assert "MXNetJobDeletedError" in run.train.log(1)
    assert run.deletions() == []


@pytest.mark.exhaustive
def test_a_job_that_somebody_replaces_is_a_failure_and_theirs_is_left_alone(world):
    run = world.begin("deferred")
    old = run.in_progress()
    ours = run.jobs()[old]
    labels = {"theirs": ours["metadata"]["name"]}
    run.gateway.down = True  # or the task sees that it is gone before there is another
    world.cluster.delete(ours)
    run.has_no_job()
    world.cluster.create(
        {**ours, "metadata": {"namespace": "default", "name": ours["metadata"]["name"], "labels": labels}}
    )
    run.gateway.down = False
    run.in_progress()
    assert run.succeed().try_number == 2
    assert "MXNetJobDeletedError" in run.train.log(1)
    (theirs,) = world.cluster.jobs("default", f"theirs={labels['theirs']}")
    assert run.deletions() == []
    world.cluster.delete(theirs)


@pytest.mark.exhaustive
def test_a_job_that_is_gone_when_the_task_resumes_has_succeeded_all_the_same(world):
    run = world.begin("deferred_ttl")
    run.in_progress()
    run.succeed()
    assert run.train.xcom()["result"] == {"accuracy": 0.9}
    run.has_no_job()


@pytest.mark.exhaustive
@pytest.mark.kubernetes
@pytest.mark.parametrize("cluster", ["real"], indirect=True)
def test_a_name_that_is_taken_is_left_to_who_has_it(world):
    taken = []

    async def handler(asked, forward):
        if asked.method == "POST" and asked.path.endswith("/mxjobs") and not taken:
            metadata = {key: asked.body["metadata"][key] for key in ("name", "namespace")}
            taken.append({**asked.body, "metadata": {**metadata, "labels": {"theirs": metadata["name"]}}})
            await asyncio.to_thread(world.cluster.create, taken[0])

    run = world.begin("deferred", handler)
    run.in_progress()
    assert run.succeed().try_number == 2
    assert "MXNetJobNameTakenError" in run.train.log(1)
    (theirs,) = world.cluster.jobs("default", f"theirs={taken[0]['metadata']['name']}")
    assert run.deletions() == []
    world.cluster.delete(theirs)
