"""Only who holds a job ends it, and no job outlives its task: a whole Airflow whose parts stand still or die."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from airflow_world import MODES
from waiting import eventually

pytestmark = [pytest.mark.exhaustive, pytest.mark.whole_airflow]


def supervisor_of(pid):
    """The process that looks after a task's."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.alone
def test_a_triggerer_that_stood_still_leaves_its_job_to_the_one_that_took_over(world):
    """Longer than Airflow's health threshold, as in apache/airflow#73454."""
    run = world.begin("deferred")
    uid = run.in_progress()
    token = eventually(lambda: run.holder().count(":") == 2 and run.holder())
    # First the other, which takes a minute on a busy machine: PostgreSQL soon gives up on one that stands still.
    world.airflow.start("triggerer", "other triggerer")
    eventually(lambda: world.airflow.living_triggerers() == 2)
    world.airflow.send("triggerer", signal.SIGSTOP)
    try:
        eventually(lambda: run.holder() != token)
    finally:
        world.airflow.send("triggerer", signal.SIGCONT)
    eventually(lambda: "is left alone, though this trigger was cancelled" in run.train.log())
    world.airflow.stop("triggerer")
    world.airflow.replace("triggerer", "other triggerer")
    run.succeed()
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])


def test_a_worker_that_stood_still_leaves_its_job_to_the_retry(world):
    """Longer than Airflow's heartbeat timeout."""
    run = world.begin("waiting")
    uid = run.in_progress()
    supervisor = supervisor_of(run.train.look().pid)
    os.kill(supervisor, signal.SIGSTOP)
    try:
        run.train.is_given_up_on()
        run.train.wait("running", try_number=2)
        eventually(lambda: run.holder().startswith("2:"))
    finally:
        os.kill(supervisor, signal.SIGCONT)
    eventually(lambda: "goes on, for the next try" in run.train.log(1))
    run.succeed()
    assert run.train.xcom()["uid"] == uid
    assert (run.creations(), run.deletions()) == (1, [])


def hanging(world, dag_id):
    """A run whose job is in progress, and the switch by which its requests hang until it is cleared."""
    hangs = []

    async def handler(asked, forward):
        if hangs:
            await asyncio.Event().wait()

    run = world.begin(dag_id, handler)
    uid = run.in_progress()
    hangs.append(True)
    return run, uid, hangs


@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_a_user_ends_while_the_api_server_hangs_for_good_loses_its_job_with_its_lease(world, mode):
    run, _, _ = hanging(world, f"{mode}_leased")
    run.train.set_state("failed")
    run.has_no_job()


@pytest.mark.alone
def test_a_job_for_which_no_task_waits_is_found_and_deleted_by_a_command(world):
    run, uid, hangs = hanging(world, "waiting")
    other = world.begin("waiting")
    kept = other.in_progress()
    pid = run.train.look().pid
    run.train.set_state("failed")
    eventually(lambda: not Path(f"/proc/{pid}").exists())
    hangs.clear()
    name = run.jobs()[uid]["metadata"]["name"]
    command = ("mxnet", "cleanup-jobs", "--namespace", "default", "--output", "json")
    shown = world.airflow.run(*command, "--min-age-minutes", "0", code=3)
    found = {row["job"]: row for row in json.loads(shown[shown.index("[") :])}
    assert found[name]["action"] == "delete"
    assert found[name]["why"] == "its task is over: failed"
    assert other.jobs()[kept]["metadata"]["name"] not in found
    assert run.uids() == {uid}
    world.airflow.run(*command, "--min-age-minutes", "0", "--delete")
    run.has_no_job()
    other.succeed()
    assert other.uids() == {kept}


def test_a_worker_that_is_killed_on_its_last_try_loses_its_job_with_its_lease(world):
    run = world.begin("waiting_leased")
    run.in_progress()
    os.kill(run.train.look().pid, signal.SIGKILL)
    run.train.wait("failed")
    run.has_no_job()
    assert run.deletions() == []
