"""A job's task from its beginning to its end, on a whole Airflow: what its user sees, and how many jobs there are."""

import urllib.request

import pytest
from airflow_scenes import anywhere
from waiting import SECONDS, eventually

from mxnet_operator.api.conditions import job_state

pytestmark = pytest.mark.whole_airflow


def test_a_deferred_task_shows_its_job_while_it_waits_and_returns_its_result(live):
    """Its link, too, though nothing of Airflow's is configured."""
    scene = live.begin("deferred")
    uid = scene.in_progress()
    metadata = scene.jobs()[uid]["metadata"]
    address = live.job_pages.format(name=metadata["name"], namespace="default", uid=uid)
    eventually(lambda: scene.train.links() == {"MXJob": address, "MXJob logs": None})  # a moment after the deferral
    assert {key: scene.train.xcom(f"job_{key}") for key in ("name", "namespace", "uid", "url")} == {
        "name": metadata["name"],
        "namespace": "default",
        "uid": uid,
        "url": address,
    }
    eventually(lambda: "[worker-0] Epoch[0] Validation-accuracy=0.5" in scene.train.log())
    assert "[worker-0] Epoch[0] Validation-accuracy=0.5" in scene.train.shown_log()
    assert scene.train.get()["state"] == "deferred"
    with urllib.request.urlopen(address, timeout=SECONDS) as page:
        assert (page.status, f"{metadata['name']}-worker-0" in page.read().decode()) == (200, True)
    scene.succeed()
    assert scene.train.links()["MXJob"] == address
    returned = scene.train.xcom()
    assert (returned["uid"], returned["state"], returned["result"]) == (uid, "Succeeded", {"accuracy": 0.9})
    assert scene.train.xcom("metrics") == {"Validation-accuracy": [[0, 0.5], [1, 0.9]]}
    assert [line for line in scene.train.shown_log().splitlines() if line.startswith("[worker-0]")] == [
        "[worker-0] Epoch[0] Validation-accuracy=0.5",
        "[worker-0] Epoch[1] Validation-accuracy=0.9",
    ]
    assert scene.creations() == 1
    assert uid not in scene.deletions()


@anywhere
def test_mapped_tasks_of_two_runs_have_a_job_each(live):
    scenes = [live.begin("deferred_mapped") for _ in range(2)]
    for scene in scenes:
        eventually(lambda scene=scene: [job_state(job) for job in scene.jobs().values()] == ["Running"] * 2)
    tasks = [scene.run.task("train", index) for scene in scenes for index in range(2)]
    for task in tasks:
        task.deferred()
    for scene in scenes:
        scene.end()
    for task in tasks:
        task.wait("success")
    assert {task.xcom()["uid"] for task in tasks} == {uid for scene in scenes for uid in scene.uids()}
    assert [scene.creations() for scene in scenes] == [2, 2]


def test_a_pool_that_counts_deferred_tasks_limits_how_many_jobs_there_are(live):
    scene = live.begin("pooled")
    most = 0

    def unfinished():
        nonlocal most
        jobs = scene.jobs()
        most = max(most, sum(job_state(job) not in ("Succeeded", "Failed") for job in jobs.values()))
        return len(jobs)

    def states():
        return sorted(state for (state,) in scene.run.states().values())

    eventually(lambda: unfinished() == 2 and states() == ["deferred", "deferred", "scheduled", "scheduled"])
    for (task_id, index), (state,) in scene.run.states().items():
        if state == "deferred":
            scene.run.task(task_id, index).deferred()
    scene.end()
    eventually(lambda: unfinished() == 4 and states() == ["success"] * 4)
    assert most == 2


def test_the_sweep_trains_once_for_each_rate_two_at_a_time_and_chooses_the_best(live):
    run = live.airflow.trigger("sweep_digits", epochs=2)
    run.wait("success")
    jobs = [run.task("train", index).xcom() for index in range(3)]
    assert len({job["uid"] for job in jobs}) == 3
    chosen = run.task("choose")
    assert chosen.xcom()["accuracy"] == max(job["result"]["accuracy"] for job in jobs)
    assert "(the best)" in chosen.log()
    lives = [
        (found["metadata"]["creationTimestamp"], found["status"]["completionTime"])
        for found in live.site.jobs("default", run.selector)
    ]
    assert len(lives) == 3
    unfinished = [sum(made <= at < over for made, over in lives) for at, _ in lives]
    assert max(unfinished) <= 2


@anywhere
def test_a_sensor_waits_for_a_job_that_another_task_created_and_a_third_deletes_it(live):
    scene = live.begin("detached")
    scene.train.wait("success")
    uid = scene.the_job()
    scene.run.task("sense").deferred()
    scene.end()
    scene.run.task("delete").wait("success")
    assert scene.run.task("delete").xcom() is True
    eventually(lambda: scene.uids() == set())
    assert uid in scene.deletions()
