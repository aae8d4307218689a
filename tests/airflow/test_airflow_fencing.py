"""Only who holds a job ends it, and no job outlives its task: a whole Airflow whose parts stand still or die.

`MXJOB_FENCING_TASKS` is how many tasks meet each fault at a time, `MXJOB_CHAOS_KILLS` how many parts are killed at
random.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from airflow_runs import OVER
from airflow_server import TASKS
from airflow_world import AT_ONCE, MODES
from waiting import eventually

from mxnet_operator.api.conditions import TERMINAL, job_state

pytestmark = [pytest.mark.whole_airflow, pytest.mark.alone]
KILLS = int(os.environ.get("MXJOB_CHAOS_KILLS", "3"))


def supervisor_of(pid):
    """The process that looks after a task's."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.exhaustive
def test_a_triggerer_that_stood_still_leaves_jobs_to_the_one_that_took_over(world):
    """Longer than Airflow's health threshold, as in apache/airflow#73454."""
    runs = [world.begin("deferred") for _ in range(TASKS)]
    uids = [run.in_progress() for run in runs]
    before = [eventually(lambda each=each: each.holder().count(":") == 2 and each.holder()) for each in runs]
    # First the other, which takes a minute on a busy machine: PostgreSQL soon gives up on one that stands still.
    world.airflow.start("triggerer", "other triggerer")
    eventually(lambda: world.airflow.living_triggerers() == 2)
    world.airflow.send("triggerer", signal.SIGSTOP)
    try:
        for run, token in zip(runs, before, strict=True):
            eventually(lambda: run.holder() != token)  # noqa: B023
    finally:
        world.airflow.send("triggerer", signal.SIGCONT)
    for run in runs:
        eventually(lambda: "is left alone, though this trigger was cancelled" in run.train.log())  # noqa: B023
    world.airflow.stop("triggerer")
    world.airflow.start("triggerer")
    for run, uid in zip(runs, uids, strict=True):
        run.succeed()
        assert run.train.xcom()["uid"] == uid
        assert (run.creations(), run.deletions()) == (1, [])
    world.airflow.stop("other triggerer")


@pytest.mark.exhaustive
def test_a_worker_that_stood_still_leaves_its_job_to_the_retry(world):
    """Longer than Airflow's heartbeat timeout."""
    runs = [world.begin("waiting") for _ in range(TASKS)]
    uids = [run.in_progress() for run in runs]
    supervisors = [supervisor_of(run.train.look().pid) for run in runs]
    with contextlib.ExitStack() as stopped:
        for run, pid in zip(runs, supervisors, strict=True):
            os.kill(pid, signal.SIGSTOP)
            stopped.callback(os.kill, pid, signal.SIGCONT)
            run.train.is_given_up_on()
        for run in runs:
            run.train.wait("running", try_number=2)
            eventually(lambda: run.holder().startswith("2:"))  # noqa: B023
    for run in runs:
        eventually(lambda: "goes on, for the next try" in run.train.log(1))  # noqa: B023
    for run, uid in zip(runs, uids, strict=True):
        run.succeed()
        assert run.train.xcom()["uid"] == uid
        assert (run.creations(), run.deletions()) == (1, [])


def hanging(world, dag_id):
    """A run whose job is in progress, and the switch that lets requests through again, which hang from now on."""
    released = asyncio.Event()
    hangs = []

    async def handler(asked, forward):
        if hangs:
            await asyncio.wait_for(released.wait(), None)

    run = world.begin(dag_id, handler)
    uid = run.in_progress()
    hangs.append(True)
    return run, uid, hangs, released


@pytest.mark.sampled
@pytest.mark.parametrize("mode", MODES)
def test_a_user_s_kill_deletes_the_job_at_once(world, mode):
    """By the task itself: neither its lease nor another look is needed. How long it takes is printed."""
    for _ in range(TASKS):
        run = world.begin(mode)
        uid = run.in_progress()
        begin = time.monotonic()
        run.train.set_state("failed")
        eventually(run.deletions)
        (deleted,) = [asked.at for asked in run.gateway.writes("/mxjobs") if asked.method == "DELETE"]
        print(f"{mode}: asked to delete the job {deleted - begin:.1f} s after the user's request")
        assert run.deletions() == [uid]
        run.has_no_job()


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_a_user_ends_while_the_api_server_hangs_for_good_loses_its_job_with_its_lease(world, mode):
    run, _, _, _ = hanging(world, f"{mode}_leased")
    run.train.set_state("failed")
    run.has_no_job()


@pytest.mark.exhaustive
def test_a_job_for_which_no_task_waits_is_found_and_deleted_by_a_command(world):
    run, uid, hangs, _ = hanging(world, "waiting")
    other = world.begin("waiting")
    kept = other.in_progress()
    pid = run.train.look().pid
    run.train.set_state("failed")
    eventually(lambda: not Path(f"/proc/{pid}").exists())
    hangs.clear()
    run.gateway.handler = None
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


@pytest.mark.exhaustive
def test_a_worker_that_is_killed_on_its_last_try_loses_its_job_with_its_lease(world):
    run = world.begin("waiting_leased")
    run.in_progress()
    os.kill(run.train.look().pid, signal.SIGKILL)
    run.train.wait("failed")
    run.has_no_job()
    assert run.deletions() == []


@pytest.mark.exhaustive
@pytest.mark.timeout(max(900, 120 * KILLS))
def test_random_kills_of_airflow_s_parts_leave_no_unfinished_job(world):
    """Of tasks of which a few wait at a time: all would need a process each."""
    seed = int(os.environ.get("MXJOB_SEED", random.randrange(10**6)))
    print(f"MXJOB_SEED={seed}", flush=True)
    draw = random.Random(seed)
    runs, unsettled, ends = [], [], Counter()

    def kill_worker(run):
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.kill(run.train.look().pid, signal.SIGKILL)

    def fail(run):
        try:
            run.train.set_state("failed")
        except AssertionError as e:  # an earlier kill has failed it
            assert "is already in failed state" in str(e)

    def is_settled(run):
        """Whether the task is over, or waits for a job, which then ends well."""
        state = run.train.look().state
        if state in ("running", "deferred") and run.uids():
            run.end()
        return state in OVER

    def settle(run):
        try:
            eventually(lambda: is_settled(run))
            eventually(lambda: all(job_state(job) in TERMINAL for job in run.jobs().values()))
        except AssertionError:
            jobs = {job["metadata"]["name"]: job_state(job) for job in run.jobs().values()}
            unsettled.append((run.dag_run.dag_id, run.dag_run.run_id, run.train.look(), jobs))
        ends[run.train.look().state, *(job_state(job) for job in run.jobs().values())] += 1

    for number in range(KILLS):
        if len(runs) == AT_ONCE:
            settle(runs.pop(draw.randrange(AT_ONCE)))
        run = world.begin(f"{draw.choice(MODES)}_leased")
        runs.append(run)
        if draw.random() < 0.8:
            run.in_progress()
        victim = draw.choice(["worker", "triggerer", "scheduler", "api-server", "user"])
        print(number, run.dag_run.dag_id, run.dag_run.run_id, victim, dict(ends), unsettled, flush=True)
        if victim == "worker":
            kill_worker(draw.choice(runs))
        elif victim == "user":
            fail(draw.choice(runs))
        else:
            world.airflow.stop(victim, signal.SIGKILL)
            if victim == "scheduler":
                world.airflow.killed_schedulers_are_given_up_on()
            world.airflow.start(victim)
            world.airflow.ready()
    for run in runs:
        settle(run)
    print(dict(ends))
    assert not unsettled
