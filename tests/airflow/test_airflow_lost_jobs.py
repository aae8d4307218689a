"""What tasks make of jobs that fail, go away, or were never theirs: on a whole Airflow, with real jobs."""

import asyncio

import pytest
from airflow_scenes import MODES, anywhere
from waiting import eventually

from mxnet_operator.api.conditions import job_state

pytestmark = pytest.mark.whole_airflow


@anywhere
@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_fails_is_shown_and_a_retry_makes_another(live, mode):
    scene = live.begin(mode)
    old = scene.in_progress()
    scene.end(3)
    eventually(lambda: job_state(scene.jobs()[old]) == "Failed")
    scene.hold()
    new = scene.in_progress()
    assert scene.succeed().try_number == 2
    log = scene.train.log(1)
    assert "MXNetJobFailedError" in log
    assert "exited with code 3" in log
    assert scene.train.xcom()["uid"] == new
    assert scene.uids() == {old, new}


@anywhere
@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_is_deleted_by_hand_is_a_failure_and_a_retry_makes_another(live, mode):
    scene = live.begin(mode)
    old = scene.in_progress()
    live.site.delete(scene.jobs()[old])
    eventually(lambda: len(scene.uids() - {old}) == 1)
    scene.in_progress()
    assert scene.succeed().try_number == 2
    assert "MXNetJobDeletedError" in scene.train.log(1)
    assert scene.deletions() == []


@anywhere
@pytest.mark.parametrize("mode", MODES)
def test_a_job_that_somebody_replaces_is_a_failure_and_theirs_is_left_alone(live, mode):
    scene = live.begin(mode)
    old = scene.in_progress()
    ours = scene.jobs()[old]
    labels = {"theirs": ours["metadata"]["name"]}
    scene.gateway.down = True  # or the task sees that it is gone before there is another
    live.site.delete(ours)
    eventually(lambda: scene.uids() == set())
    live.site.create({**ours, "metadata": {"namespace": "default", "name": ours["metadata"]["name"], "labels": labels}})
    scene.gateway.down = False
    scene.in_progress()
    assert scene.succeed().try_number == 2
    assert "MXNetJobDeletedError" in scene.train.log(1)
    (theirs,) = live.site.jobs("default", f"theirs={labels['theirs']}")
    assert scene.deletions() == []
    live.site.delete(theirs)


@anywhere
def test_a_job_that_is_gone_when_the_task_resumes_has_succeeded_all_the_same(live):
    scene = live.begin("deferred_ttl")
    scene.in_progress()
    scene.succeed()
    assert scene.train.xcom()["result"] == ({"accuracy": 0.9} if live.site.has_logs else None)
    eventually(lambda: scene.uids() == set())


@anywhere
def test_a_name_that_is_taken_is_left_to_who_has_it(live):
    taken = []

    async def handler(asked, forward):
        if asked.method == "POST" and asked.path.endswith("/mxjobs") and not taken:
            metadata = {key: asked.body["metadata"][key] for key in ("name", "namespace")}
            taken.append({**asked.body, "metadata": {**metadata, "labels": {"theirs": metadata["name"]}}})
            await asyncio.to_thread(live.site.create, taken[0])

    scene = live.begin("deferred", handler)
    scene.in_progress()
    assert scene.succeed().try_number == 2
    assert "MXNetJobNameTakenError" in scene.train.log(1)
    (theirs,) = live.site.jobs("default", f"theirs={taken[0]['metadata']['name']}")
    assert scene.deletions() == []
    live.site.delete(theirs)
