"""Only who holds a job ends it, and no job outlives its task: a whole Airflow whose parts stand still or die.

`MXJOB_FENCING_SCENES` is how many tasks meet each scene at a time, `MXJOB_CHAOS_KILLS` how many parts are killed at
random.
"""

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from airflow_runs import OVER
from airflow_scenes import AT_ONCE, MODES
from airflow_server import SCENES
from waiting import eventually

from mxnet_operator.api.conditions import TERMINAL, job_state

pytestmark = [pytest.mark.whole_airflow, pytest.mark.alone]
KILLS = int(os.environ.get("MXJOB_CHAOS_KILLS", "3"))


def supervisor_of(pid):
    """The process that looks after a task's."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_triggerer_that_stood_still_leaves_jobs_to_the_one_that_took_over(live):
    """Longer than Airflow's health threshold, as in apache/airflow#73454."""
    scenes = [live.begin("deferred") for _ in range(SCENES)]
    uids = [scene.in_progress() for scene in scenes]
    before = [eventually(lambda each=each: each.holder().count(":") == 2 and each.holder()) for each in scenes]
    live.airflow.send("triggerer", signal.SIGSTOP)
    try:
        live.airflow.start("triggerer", "other triggerer")
        for scene, token in zip(scenes, before, strict=True):
            eventually(lambda: scene.holder() != token)  # noqa: B023
    finally:
        live.airflow.send("triggerer", signal.SIGCONT)
    for scene in scenes:
        eventually(lambda: "is left alone, though this trigger was cancelled" in scene.train.log())  # noqa: B023
    live.airflow.stop("triggerer")
    live.airflow.start("triggerer")
    for scene, uid in zip(scenes, uids, strict=True):
        scene.succeed()
        assert scene.train.xcom()["uid"] == uid
        assert (scene.creations(), scene.deletions()) == (1, [])
    live.airflow.stop("other triggerer")


def test_a_worker_that_stood_still_leaves_its_job_to_the_retry(live):
    """Longer than Airflow's heartbeat timeout."""
    scenes = [live.begin("waiting") for _ in range(SCENES)]
    uids = [scene.in_progress() for scene in scenes]
    supervisors = [supervisor_of(scene.train.look().pid) for scene in scenes]
    with contextlib.ExitStack() as stopped:
        for scene, pid in zip(scenes, supervisors, strict=True):
            os.kill(pid, signal.SIGSTOP)
            stopped.callback(os.kill, pid, signal.SIGCONT)
            scene.train.is_given_up_on()
        for scene in scenes:
            scene.train.wait("running", try_number=2)
            eventually(lambda: scene.holder().startswith("2:"))  # noqa: B023
    for scene in scenes:
        eventually(lambda: "is left alone, though this try was killed" in scene.train.log(1))  # noqa: B023
    for scene, uid in zip(scenes, uids, strict=True):
        scene.succeed()
        assert scene.train.xcom()["uid"] == uid
        assert (scene.creations(), scene.deletions()) == (1, [])


def hanging(live, dag_id):
    """A run whose job is in progress, and the switch that lets requests through again, which hang from now on."""
    released = asyncio.Event()
    hangs = []

    async def handler(asked, forward):
        if hangs:
            await asyncio.wait_for(released.wait(), None)

    scene = live.begin(dag_id, handler)
    uid = scene.in_progress()
    hangs.append(True)
    return scene, uid, hangs, released


@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_a_user_ends_while_the_api_server_hangs_loses_its_job_when_it_is_back(live, mode):
    scene, uid, hangs, _ = hanging(live, mode)
    pid = scene.train.look().pid
    scene.train.set_state("failed")
    if mode == "deferred":
        eventually(lambda: "may still be running: the API server, or Airflow, did not answer" in scene.train.log())
    else:
        eventually(lambda: not Path(f"/proc/{pid}").exists())
        assert Path(f"/proc/{detached_of(scene)}").exists()
    assert scene.uids() == {uid}
    hangs.clear()
    scene.gateway.handler = None
    eventually(lambda: scene.uids() == set())
    assert scene.deletions()[-1] == uid


def detached_of(scene):
    """The process that is to outlive the task's."""
    return int(re.search(r"process (\d+) goes on asking", scene.train.log())[1])


@pytest.mark.parametrize("mode", MODES)
def test_a_user_s_kill_deletes_the_job_at_once(live, mode):
    """By the task itself: neither its lease nor another look is needed. How long it takes is printed."""
    for _ in range(SCENES):
        scene = live.begin(mode)
        uid = scene.in_progress()
        begin = time.monotonic()
        scene.train.set_state("failed")
        eventually(scene.deletions)
        (deleted,) = [asked.at for asked in scene.gateway.writes("/mxjobs") if asked.method == "DELETE"]
        print(f"{mode}: asked to delete the job {deleted - begin:.1f} s after the user's request")
        assert scene.deletions() == [uid]
        eventually(lambda: scene.uids() == set())  # noqa: B023


@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_a_user_ends_while_the_api_server_hangs_for_good_loses_its_job_with_its_lease(live, mode):
    scene, _, _, _ = hanging(live, f"{mode}_leased")
    scene.train.set_state("failed")
    eventually(lambda: scene.uids() == set())


def test_a_job_for_which_no_task_waits_is_found_and_deleted_by_a_command(live):
    scene, uid, hangs, _ = hanging(live, "waiting")
    other = live.begin("waiting")
    kept = other.in_progress()
    pid = scene.train.look().pid
    scene.train.set_state("failed")
    eventually(lambda: not Path(f"/proc/{pid}").exists())
    os.kill(detached_of(scene), signal.SIGKILL)  # as where the worker is a pod, which ends with its task
    hangs.clear()
    scene.gateway.handler = None
    name = scene.jobs()[uid]["metadata"]["name"]
    command = ("mxnet", "cleanup-jobs", "--namespace", "default", "--output", "json")
    live.airflow.run(*command, code=0)  # too young
    shown = live.airflow.run(*command, "--min-age-minutes", "0", code=3)
    found = {row["job"]: row for row in json.loads(shown[shown.index("[") :])}
    assert found[name]["action"] == "delete"
    assert found[name]["why"] == "its task is over: failed"
    assert other.jobs()[kept]["metadata"]["name"] not in found
    assert scene.uids() == {uid}
    live.airflow.run(*command, "--min-age-minutes", "0", "--delete")
    eventually(lambda: scene.uids() == set())
    other.succeed()
    assert other.uids() == {kept}


def test_a_worker_that_is_killed_on_its_last_try_loses_its_job_with_its_lease(live):
    scene = live.begin("waiting_leased")
    scene.in_progress()
    os.kill(scene.train.look().pid, signal.SIGKILL)
    scene.train.wait("failed")
    eventually(lambda: scene.uids() == set())
    assert scene.deletions() == []


@pytest.mark.timeout(max(900, 120 * KILLS))
def test_random_kills_of_airflow_s_parts_leave_no_unfinished_job(live):
    """Of tasks of which a few wait at a time: all would need a process each."""
    seed = int(os.environ.get("MXJOB_SEED", random.randrange(10**6)))
    print(f"MXJOB_SEED={seed}", flush=True)
    draw = random.Random(seed)
    scenes, unsettled, ends = [], [], Counter()

    def kill_worker(scene):
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.kill(scene.train.look().pid, signal.SIGKILL)

    def fail(scene):
        try:
            scene.train.set_state("failed")
        except AssertionError as e:  # an earlier kill has failed it
            assert "is already in failed state" in str(e)

    def is_settled(scene):
        """Whether the task is over, or waits for a job, which then ends well."""
        state = scene.train.look().state
        if state in ("running", "deferred") and scene.uids():
            scene.end()
        return state in OVER

    def settle(scene):
        try:
            eventually(lambda: is_settled(scene))
            eventually(lambda: all(job_state(job) in TERMINAL for job in scene.jobs().values()))
        except AssertionError:
            jobs = {job["metadata"]["name"]: job_state(job) for job in scene.jobs().values()}
            unsettled.append((scene.run.dag_id, scene.run.run_id, scene.train.look(), jobs))
        ends[scene.train.look().state, *(job_state(job) for job in scene.jobs().values())] += 1

    for number in range(KILLS):
        if len(scenes) == AT_ONCE:
            settle(scenes.pop(draw.randrange(AT_ONCE)))
        scene = live.begin(f"{draw.choice(MODES)}_leased")
        scenes.append(scene)
        if draw.random() < 0.8:
            scene.in_progress()
        victim = draw.choice(["worker", "triggerer", "scheduler", "api-server", "user"])
        print(number, scene.run.dag_id, scene.run.run_id, victim, dict(ends), unsettled, flush=True)
        if victim == "worker":
            kill_worker(draw.choice(scenes))
        elif victim == "user":
            fail(draw.choice(scenes))
        else:
            live.airflow.stop(victim, signal.SIGKILL)
            if victim == "scheduler":
                live.airflow.killed_schedulers_are_given_up_on()
            live.airflow.start(victim)
            live.airflow.ready()
    for scene in scenes:
        settle(scene)
    print(dict(ends))
    assert not unsettled
