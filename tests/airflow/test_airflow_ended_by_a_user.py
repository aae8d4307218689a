"""What becomes of a job whose task a user ends or clears: on a whole Airflow, with real jobs."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from airflow_scenes import MODES, anywhere
from waiting import eventually

from mxnet_operator.api.conditions import job_state

pytestmark = pytest.mark.whole_airflow

VANISHING = """
from airflow.providers.common.compat.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

for mode in ("deferred", "waiting"):
    with DAG(f"{mode}_vanishing", schedule=None):
        EmptyOperator(task_id="stays")
        if TRAINS:
            MXNetJobOperator(
                task_id="train",
                image="mxjob/mxnet:1.9.1",
                command=["sh", "-c", 'until [ -s "$GATE" ]; do sleep 0.2; done'],
                env={"GATE": "{{ dag_run.conf['gate'] }}"},
                kubernetes_conn_id="{{ dag_run.conf['connection'] }}",
                poll_interval=2,
                retries=2,
                deferrable=mode == "deferred",
            )
"""
"""A file with two DAGs, whose task `train` is there as long as TRAINS is true."""


@anywhere
@pytest.mark.parametrize("state", ["failed", "success"])
@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_a_user_ends_ends_its_job(live, mode, state):
    scene = live.begin(mode)
    uid = scene.in_progress()
    scene.train.set_state(state)
    eventually(lambda: scene.uids() == set())
    assert uid in scene.deletions()
    assert scene.creations() == 1


@anywhere
@pytest.mark.parametrize(("kind", "suspended"), [("suspended", True), ("kept", False)])
def test_a_job_may_be_suspended_or_kept_when_its_task_is_ended(live, kind, suspended):
    scene = live.begin(f"deferred_{kind}")
    uid = scene.in_progress()
    scene.train.set_state("failed")
    state = "Suspended" if suspended else "Running"
    eventually(lambda: f"{'Suspended' if suspended else 'is kept'}" in scene.train.log())
    eventually(lambda: {uid: job_state(job) for uid, job in scene.jobs().items()} == {uid: state})
    if not suspended:
        scene.end()
        eventually(lambda: {job_state(job) for job in scene.jobs().values()} == {"Succeeded"})
    assert scene.uids() == {uid}
    assert uid not in scene.deletions()


@anywhere
@pytest.mark.parametrize("mode", MODES)
def test_a_task_that_is_cleared_gets_a_new_job_and_the_old_one_goes(live, mode):
    scene = live.begin(mode)
    old = scene.in_progress()
    scene.train.clear()
    eventually(lambda: len(scene.uids() - {old}) == 1 and old not in scene.uids())
    new = scene.in_progress()
    scene.succeed()
    assert scene.train.xcom()["uid"] == new
    assert new not in scene.deletions()
    assert scene.creations() == 2


def test_a_task_that_is_taken_out_of_its_dag_leaves_no_job(live):
    """Airflow marks it removed, which ends its trigger or its worker, so that no clearing finds a job to go on with.

    What becomes of the run depends on whether the scheduler has compared it with its DAG by then.
    """
    file = Path(live.airflow.environment["AIRFLOW__CORE__DAGS_FOLDER"]) / "vanishing.py"
    file.write_text(f"TRAINS = True\n{VANISHING}")
    live.airflow.know_dags()
    scenes = [live.begin(f"{mode}_vanishing") for mode in MODES]
    uids = [scene.in_progress() for scene in scenes]
    file.write_text(f"TRAINS = False\n{VANISHING}")
    live.airflow.know_dags()
    for scene, uid in zip(scenes, uids, strict=True):
        eventually(lambda: scene.uids() == set())  # noqa: B023
        assert scene.deletions()[-1] == uid
        eventually(lambda: scene.train.look().state == "removed")  # noqa: B023
        assert scene.creations() == 1


@anywhere
def test_a_finished_task_that_is_cleared_runs_again(live):
    scene = live.begin("deferred")
    first = scene.in_progress()
    scene.succeed()
    scene.run.wait("success")  # or the scheduler, in the middle of writing that, undoes the half of the clearing
    scene.hold()
    scene.train.clear()
    eventually(lambda: len(scene.uids()) == 2)
    (second,) = scene.uids() - {first}
    eventually(lambda: job_state(scene.jobs()[second]) == "Running")
    scene.succeed()
    assert scene.train.xcom()["uid"] == second
    assert scene.deletions() == []


@anywhere
def test_a_task_that_is_cleared_while_it_creates_its_job_leaves_one_job(live):
    """The request has arrived, and its reply is held back until Airflow ends the task."""
    held = []

    async def handler(asked, forward):
        if asked.method == "POST" and asked.path.endswith("/mxjobs") and not held:
            await asyncio.to_thread(live.site.create, asked.body)
            held.append(asked.body)
            await asyncio.Event().wait()

    scene = live.begin("deferred", handler)
    eventually(lambda: held)
    scene.train.wait("running")
    scene.train.clear()
    scene.train.wait("deferred", try_number=2)
    uid = scene.in_progress()
    scene.succeed()
    assert scene.train.xcom()["uid"] == uid
    assert scene.uids() == {uid}


@anywhere
def test_a_task_that_is_cleared_while_it_returns_has_the_result_of_the_job_that_is_over(live):
    """Airflow doesn't tell that from a retry. The reply to the job's deletion is held back until it ends the task."""
    held = []

    async def handler(asked, forward):
        if asked.method == "DELETE" and not held:
            held.append(asked)
            await asyncio.Event().wait()

    scene = live.begin("deferred_removed", handler)
    uid = scene.in_progress()
    scene.end()
    eventually(lambda: held)
    scene.train.clear()
    assert scene.train.wait("success").try_number == 2
    assert scene.train.xcom()["uid"] == uid
    assert scene.creations() == 1


@anywhere
def test_a_worker_that_is_asked_to_end_ends_its_job_and_a_retry_makes_another(live):
    scene = live.begin("waiting")
    old = scene.in_progress()
    os.kill(scene.train.look().pid, signal.SIGTERM)
    eventually(lambda: len(scene.uids() - {old}) == 1 and old not in scene.uids())
    new = scene.in_progress()
    assert scene.succeed().try_number == 2
    assert scene.train.xcom()["uid"] == new
    assert scene.deletions() == [old]
