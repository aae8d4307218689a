"""A job's task from its beginning to its end, on a whole Airflow: what its user sees, and how many jobs there are."""

import urllib.request

import pytest
from waiting import SECONDS, eventually

from mxnet_operator.api.conditions import job_state

pytestmark = pytest.mark.whole_airflow


def test_a_deferred_task_shows_its_job_while_it_waits_and_returns_its_result(world):
    """Its link, too, though nothing of Airflow's is configured."""
    run = world.begin("deferred")
    uid = run.in_progress()
    metadata = run.jobs()[uid]["metadata"]
    address = world.job_pages.format(name=metadata["name"], namespace="default", uid=uid)
    eventually(lambda: run.train.links() == {"MXJob": address, "MXJob logs": None})  # a moment after the deferral
    assert {key: run.train.xcom(f"job_{key}") for key in ("name", "namespace", "uid", "url")} == {
        "name": metadata["name"],
        "namespace": "default",
        "uid": uid,
        "url": address,
    }
    eventually(lambda: (run.train.shown_job() or {}).get("metadata", {}).get("name") == metadata["name"])
    eventually(lambda: "[worker-0] Epoch[0] Validation-accuracy=0.5" in run.train.log())
    assert "[worker-0] Epoch[0] Validation-accuracy=0.5" in run.train.shown_log()
    assert run.train.get()["state"] == "deferred"
    with urllib.request.urlopen(address, timeout=SECONDS) as page:
        assert (page.status, f"{metadata['name']}-worker-0" in page.read().decode()) == (200, True)
    run.succeed()
    assert run.train.links()["MXJob"] == address
    assert (
        eventually(run.train.shown_job)["metadata"]["name"] == metadata["name"]
    )  # though the resumed task rendered anew
    returned = run.train.xcom()
    assert (returned["uid"], returned["state"], returned["result"]) == (uid, "Succeeded", {"accuracy": 0.9})
    assert run.train.xcom("metrics") == {"Validation-accuracy": [[0, 0.5], [1, 0.9]]}
    assert [line for line in run.train.shown_log().splitlines() if line.startswith("[worker-0]")] == [
        "[worker-0] Epoch[0] Validation-accuracy=0.5",
        "[worker-0] Epoch[1] Validation-accuracy=0.9",
    ]
    assert run.creations() == 1
    assert uid not in run.deletions()


def test_mapped_tasks_of_two_runs_have_a_job_each(world):
    runs = [world.begin("deferred_mapped") for _ in range(2)]
    for run in runs:
        eventually(lambda run=run: [job_state(job) for job in run.jobs().values()] == ["Running"] * 2)
    tasks = [run.dag_run.task("train", index) for run in runs for index in range(2)]
    for task in tasks:
        task.deferred()
    for run in runs:
        run.end()
    for task in tasks:
        task.wait("success")
    assert {task.xcom()["uid"] for task in tasks} == {uid for run in runs for uid in run.uids()}
    assert [run.creations() for run in runs] == [2, 2]


@pytest.mark.exhaustive
def test_the_sweep_trains_once_for_each_rate_two_at_a_time_and_chooses_the_best(world):
    run = world.airflow.trigger("sweep_digits", epochs=2)
    run.wait("success")
    jobs = [run.task("train", index).xcom() for index in range(3)]
    assert len({job["uid"] for job in jobs}) == 3
    chosen = run.task("choose")
    assert chosen.xcom()["accuracy"] == max(job["result"]["accuracy"] for job in jobs)
    assert "(the best)" in chosen.log()
    lives = [
        (found["metadata"]["creationTimestamp"], found["status"]["completionTime"])
        for found in world.cluster.jobs("default", run.selector)
    ]
    assert len(lives) == 3
    unfinished = [sum(made <= at < over for made, over in lives) for at, _ in lives]
    assert max(unfinished) <= 2


def test_a_sensor_waits_for_a_job_that_another_task_created_and_a_third_deletes_it(world):
    run = world.begin("detached")
    run.train.wait("success")
    uid = run.the_job()
    run.dag_run.task("sense").deferred()
    run.end()
    run.dag_run.task("delete").wait("success")
    assert run.dag_run.task("delete").xcom() is True
    run.has_no_job()
    assert uid in run.deletions()
